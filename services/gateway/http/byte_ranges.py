"""Parses Range headers with a single byte range."""

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=\s*([0-9]{0,15})-([0-9]{0,15})\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A byte range of a resource whose size need not be known yet.

    Attributes:
        first: The first byte; None for a suffix range.
        last: The last byte, or the length of a suffix range; None for an open range.
    """

    first: int | None
    last: int | None

    def within(self, size_bytes: int) -> range | None:
        """Return the range within a size; None if it is empty."""
        if self.first is None:
            assert self.last is not None  # The pattern excludes such a range.
            found = range(max(0, size_bytes - self.last), size_bytes)
        else:
            end = size_bytes if self.last is None else min(self.last + 1, size_bytes)
            found = range(self.first, end)
        return found or None


def range_of(header: str | None) -> ByteRange | None:
    """Parse a Range header; None for the whole resource.

    An invalid header, or one with several ranges, is answered with the whole resource.
    """
    found = None if header is None else _RANGE.fullmatch(header.strip())
    if found is None:
        return None
    first, last = (int(text) if text else None for text in found.groups())
    is_backwards = first is not None and last is not None and last < first
    return None if is_backwards or first is last is None else ByteRange(first, last)
