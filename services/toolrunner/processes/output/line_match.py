"""A line matcher for output, by a regular expression that runs in linear time (RE2)."""

from typing import Final

import re2

from toolrunner.primitives.errors import InvalidPattern
from toolrunner.processes.output.excerpt import without_escapes

PATTERN_CHARACTERS_MAX: Final = 1000
LINE_BYTES_MAX: Final = 4096


class LineMatcher:
    """Matches complete lines; of long ones only the beginning.

    Raises:
        InvalidPattern: The expression is not valid.
    """

    def __init__(self, pattern: str) -> None:
        options = re2.Options()
        options.log_errors = False
        try:
            self._expression = re2.compile(pattern, options=options)
        except re2.error as error:
            raise InvalidPattern(pattern, _text_of(error)) from error
        self._rest = b""

    @property
    def has_begun(self) -> bool:
        """Whether there is an incomplete line."""
        return bool(self._rest)

    def feed(self, data: bytes) -> str | None:
        """Return the first complete line that matches."""
        *lines, rest = (self._rest + data).split(b"\n")
        # Only the beginning of a line is matched, so the rest of a long one is not kept.
        self._rest = rest[:LINE_BYTES_MAX]
        return next((line for line in map(self._matched, lines) if line is not None), None)

    def finish(self) -> str | None:
        """Return the last, incomplete line if it matches."""
        return self._matched(self._rest) if self._rest else None

    def _matched(self, line: bytes) -> str | None:
        text = without_escapes(line[:LINE_BYTES_MAX].rstrip(b"\r")).decode("utf-8", "replace")
        if self._expression.search(text) is None:
            return None
        return text.encode()[:LINE_BYTES_MAX].decode(errors="ignore")


def _text_of(error: Exception) -> str:
    first = error.args[0] if error.args else "it cannot be read"
    return first.decode(errors="replace") if isinstance(first, bytes) else str(first)
