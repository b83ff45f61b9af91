"""What a command can end with other than success, each with its exit code.

CliError                  1    the work failed
├── ConfigurationProblem  2    something has to be set or installed differently
├── NeedsAction           3    the chat waits for an answer this command cannot give
└── TimedOut              124  the time given with --timeout ran out
"""

from typing import ClassVar


class CliError(Exception):
    """A failure as the user should read it: one message that names the remedy."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the text to print, one entry per line."""
        return (self.message,)


class ConfigurationProblem(CliError):
    """Everything that must be changed before the command can work, all at once."""

    exit_code: ClassVar[int] = 2

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems

    @property
    def lines(self) -> tuple[str, ...]:
        """Return one line per problem."""
        return self.problems


class NeedsAction(CliError):
    """A person or a program must act before the work can go on."""

    exit_code: ClassVar[int] = 3


class TimedOut(CliError):
    """The work did not end in the time given for it."""

    exit_code: ClassVar[int] = 124
