"""What is wrong with how a process was set up."""


class ConfigurationError(Exception):
    """The process cannot run as it is set up; the text says what to change.

    Rooms and services derive their own from it, and `parley.process` ends with exit code 2.

    ConfigurationError
    └── SettingsError
    """


class SettingsError(ConfigurationError):
    """The environment does not give the settings asked for."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
