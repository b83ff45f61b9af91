"""Durations as models write them: `10s`, `1m30s`, `500ms`."""

import re
from typing import Final

from chatd.tools.workspace.arguments import BadArguments

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PIECE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)")
_WHOLE: Final = re.compile(rf"(?:{_PIECE.pattern})+")


def seconds_of(text: str, argument: str) -> float:
    """Return a duration in seconds.

    Raises:
        BadArguments: it is not a duration.
    """
    duration_text = text.strip()
    if not _WHOLE.fullmatch(duration_text):
        problem = f"{argument}: {text[:32]!r} is not a duration"
        raise BadArguments(problem, 'write a number with its unit, such as "30s", "2m" or "500ms"')
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PIECE.findall(duration_text))


def duration_text(seconds: float) -> str:
    """Format a duration."""
    return f"{seconds:g}s"
