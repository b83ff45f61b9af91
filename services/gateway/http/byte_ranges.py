"""Range headers: the one range of bytes that a request asks for."""

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=\s*([0-9]{0,15})-([0-9]{0,15})\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of something whose size need not be known yet.

    Attributes:
        first: The first byte; None for the last ones.
        last: The last byte, or how many of the last ones; None for all that follow.
    """

    first: int | None
    last: int | None

    def within(self, size_bytes: int) -> range | None:
        """Return the bytes there are of it; None if there are none."""
        if self.first is None:
            assert self.last is not None  # There is no such range.
            found = range(max(0, size_bytes - self.last), size_bytes)
        else:
            end = size_bytes if self.last is None else min(self.last + 1, size_bytes)
            found = range(self.first, end)
        return found or None


def range_of(header: str | None) -> ByteRange | None:
    """Return the range that a header asks for; None for everything.

    What cannot be read, or asks for several ranges, is to be answered with everything.
    """
    found = None if header is None else _RANGE.fullmatch(header.strip())
    if found is None:
        return None
    first, last = (int(text) if text else None for text in found.groups())
    is_backwards = first is not None and last is not None and last < first
    return None if is_backwards or first is last is None else ByteRange(first, last)
