"""Refuses to ask a question without a terminal."""

import sys

from parley.cli.errors import ConfigurationProblem


def check_terminal(options: str) -> None:
    """Check that standard input is a terminal, at which a person can answer a question.

    Args:
        options: The options that answer the question in its place.

    Raises:
        ConfigurationProblem: it is none.
    """
    if not sys.stdin.isatty():
        raise ConfigurationProblem(f"there is no terminal to ask on: give {options}")
