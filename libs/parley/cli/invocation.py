"""The call of the command: its environment, its home and its program name."""

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from parley.cli.errors import ConfigurationProblem
from parley.cli.home.layout import Home

DEFAULT_HOME = ".parley"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of `parley`."""

    #: The process environment, read once in `main`.
    environment: Mapping[str, str]
    #: The command line that calls this program again.
    program: str
    #: The value of --home, when it was given.
    home_option: str | None = None

    @property
    def home(self) -> Home:
        """Return the home this call works on: --home, then PARLEY_HOME, then ~/.parley."""
        named = self.home_option or self.environment.get("PARLEY_HOME")
        if named:
            return Home.at(Path(named).expanduser())
        user_home = self.environment.get("HOME")
        if not user_home:
            raise ConfigurationProblem("HOME is not set: name a directory with --home DIR")
        return Home.at(Path(user_home) / DEFAULT_HOME)

    @property
    def local_home(self) -> Home:
        """Return the home for a command that works on this machine only, after checking it.

        Raises:
            ConfigurationProblem: PARLEY_URL means another machine, or the home cannot be used.
        """
        if self.environment.get("PARLEY_URL", "").strip() and self.home_option is None:
            raise ConfigurationProblem(
                "PARLEY_URL is set, and this command works on this machine only: "
                "unset PARLEY_URL, or name the home here with --home DIR"
            )
        self.home.check()
        return self.home

    @property
    def is_debug(self) -> bool:
        """Return whether tracebacks are wanted."""
        return self.environment.get("PARLEY_DEBUG", "") not in ("", "0")

    def hint(self, command: str) -> str:
        """Return `command` as the user would type it for the same home."""
        home = f" --home {shlex.quote(self.home_option)}" if self.home_option else ""
        return f"{self.program} {command}{home}"


def program_called(argv0: str, search_path: str | None) -> str:
    """Return what the user typed to reach this program, given its first argument."""
    called = Path(argv0)
    if called.name == "__main__.py":
        return "python -m parley.cli"
    found = shutil.which(called.name, path=search_path)
    if found and called.is_absolute() and Path(found) == called:
        return called.name
    here = Path.cwd()
    if called.is_absolute() and called.is_relative_to(here):
        return shlex.quote(str(called.relative_to(here)))
    return shlex.quote(argv0)


def current() -> Invocation:
    """Return the invocation of the click command that is running."""
    return click.get_current_context().ensure_object(Invocation)
