"""Detects data that was passed instead of a command."""

import ast
import json
import shlex
import warnings
from typing import Any, Final

from chatd.tools.workspace.arguments import BadArguments

LITERAL_CHARACTERS_MAX: Final = 16 * 1024


def refuse_literal(command: str) -> None:
    """Reject a command that is a JSON or Python value.

    Raises:
        BadArguments: it is such a value; the hint has the command that was probably meant.
    """
    text = command.strip()
    if not text.startswith(("{", "[", "(")) or len(text) > LITERAL_CHARACTERS_MAX:
        return
    value = _value_of(text)
    if value is None:
        return
    kind = "an object" if isinstance(value, dict) else "a list"
    raise BadArguments(
        f"command: this is {kind} as text, which no shell can run",
        f"write the command line itself, such as {_meant(value)}",
    )


def _value_of(text: str) -> object | None:
    """Parse a text as a list or object, None for everything else."""
    try:
        return _collection(json.loads(text))
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings(action="ignore"):
            return _collection(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _collection(value: object) -> object | None:
    return value if isinstance(value, (dict, list, tuple)) else None


def _meant(value: Any) -> str:
    match value:
        case {"command": str(command)} | {"cmd": str(command)}:
            return command[:200]
        case [_, *_] as words if all(isinstance(word, str) for word in words):
            return shlex.join(map(str, words))[:200]
        case _:
            return "ls -l"
