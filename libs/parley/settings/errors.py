"""Errors of the configuration of a process."""


class ConfigurationError(Exception):
    """The process cannot run with its configuration; the text says what to change.

    Packages and services derive their own from it, and `parley.process` exits with code 2.

    ConfigurationError
    └── SettingsError
    """


class SettingsError(ConfigurationError):
    """The environment lacks required settings or has invalid ones."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
