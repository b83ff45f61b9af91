"""Commands and groups that all accept --home, and options that several of them have."""

import sys
from dataclasses import replace
from typing import Any

import click

from parley.cli.errors import ConfigurationProblem
from parley.cli.invocation import Invocation

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _use_home(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.obj = replace(ctx.ensure_object(Invocation), home_option=value)


def _home_option() -> click.Option:
    return click.Option(
        ["--home"],
        metavar="DIR",
        expose_value=False,
        is_eager=True,
        callback=_use_home,
        help="Where Parley keeps its data (default: PARLEY_HOME or ~/.parley).",
    )


class HomeCommand(click.Command):
    """A command with --home."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(_home_option())


class HomeGroup(click.Group):
    """A group with --home, whose commands have it too."""

    command_class = HomeCommand

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(_home_option())


def check_terminal(options: str) -> None:
    """Check that standard input is a terminal, at which a person can answer a question.

    Args:
        options: The options that answer the question in its place.

    Raises:
        ConfigurationProblem: it is none.
    """
    if not sys.stdin.isatty():
        raise ConfigurationProblem(f"there is no terminal to ask on: give {options}")
