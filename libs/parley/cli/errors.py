"""The errors that a command can end with, each with its exit code.

CliError                  1    the work failed
├── ConfigurationProblem  2    something has to be configured or installed differently
├── NeedsAction           3    the chat waits for an input this command cannot give
└── TimedOut              124  the time given with --timeout ran out
"""

from typing import ClassVar


class CliError(Exception):
    """A failure to be printed: one message that says how to fix it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the text to print, one entry per line."""
        return (self.message,)


class ConfigurationProblem(CliError):
    """Everything that must be changed before the command can work, reported together."""

    exit_code: ClassVar[int] = 2

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems

    @property
    def lines(self) -> tuple[str, ...]:
        """Return one line per problem."""
        return self.problems


class NeedsAction(CliError):
    """A person or a program must act before the work can continue."""

    exit_code: ClassVar[int] = 3


class TimedOut(CliError):
    """The work did not end in the time given for it."""

    exit_code: ClassVar[int] = 124
