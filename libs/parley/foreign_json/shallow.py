"""JSON that is nested too deep for its reader, made shallow while it arrives.

A reader of JSON that has a limit of depth refuses the whole text, however small the deep part is.
"""

import re
from typing import Final

_OUTSIDE_STRINGS: Final = re.compile(rb'["\[\]{}]')
#: A line break ends a string: JSON has none in its strings, and other lines of events may have one
#: quote.
_INSIDE_STRINGS: Final = re.compile(rb'["\\\r\n]')


class ShallowJson:
    """Replaces arrays and objects at more than `depth_max` levels by null, piece by piece.

    The text is not checked: what is no JSON before is none afterwards.
    """

    def __init__(self, depth_max: int) -> None:
        self._depth_max = depth_max
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False

    def add(self, piece: bytes) -> bytes:
        """Return what is left of the next piece of the text."""
        kept = bytearray()
        begin, at = 0, 0
        if self._is_escaped and piece:
            self._is_escaped, at = False, 1
        while found := self._next(piece, at):
            at = found.end()
            match found[0]:
                case b"\\":
                    self._is_escaped = at == len(piece)
                    at += 1
                case b"[" | b"{":
                    if self._depth == self._depth_max:
                        kept += piece[begin : at - 1] + b"null"
                    self._depth += 1
                case b"]" | b"}":
                    self._depth = max(0, self._depth - 1)
                    if self._depth == self._depth_max:
                        begin = at
                case _:
                    self._is_in_string = not self._is_in_string
        if self._depth <= self._depth_max:
            kept += piece[begin:]
        return bytes(kept)

    def _next(self, piece: bytes, at: int) -> re.Match[bytes] | None:
        pattern = _INSIDE_STRINGS if self._is_in_string else _OUTSIDE_STRINGS
        return pattern.search(piece, at)
