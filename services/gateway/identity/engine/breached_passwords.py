"""Passwords that are known from breaches, in a file of ordered SHA-1 hashes.

The format is that in which Have I Been Pwned publishes its list, ordered by hash: on each line a
hash in hexadecimal digits, a colon and a number. That list has tens of gigabytes, so it is searched
where it lies, with a few dozen reads for a password.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import Final

HASH_DIGITS: Final = 40
LINE_BYTES_MAX: Final = 128
_LINE: Final = re.compile(rb"[0-9A-Fa-f]{40}(?::[0-9]+)?\r?\n?")


class BreachedPasswords:
    """Searches a file for passwords; `close` closes it.

    Args:
        path: The file.

    Raises:
        OSError: It cannot be read.
        ValueError: It has another format.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        first = self._file.readline(LINE_BYTES_MAX)
        if _LINE.fullmatch(first) is None:
            self._file.close()
            raise ValueError("its first line is no SHA-1 hash in hexadecimal digits")

    def contain(self, password: str) -> bool:
        """Return whether a password is in the file; for any number of threads."""
        wanted = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()
        # The line of the password begins between these two, if there is one.
        first, end = 0, os.fstat(self._file.fileno()).st_size
        while first < end:
            middle = (first + end) // 2
            line_start, line = self._line_from(middle)
            found = line[:HASH_DIGITS].upper()
            # There is no line where the file ends by now: it may be written while it is read.
            if not line or line_start >= end or found > wanted:
                end = middle
            elif found < wanted:
                first = line_start + len(line)
            else:
                return True
        return False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _line_from(self, place: int) -> tuple[int, bytes]:
        """Return where the first line begins at a place or after it, and that line."""
        if not place:
            return 0, self._read(0)
        # The line before it may begin anywhere.
        start = place - 1 + len(self._read(place - 1))
        return start, self._read(start)

    def _read(self, place: int) -> bytes:
        """Return what is left of a line at a place, without the position that the file has."""
        found = os.pread(self._file.fileno(), LINE_BYTES_MAX, place)
        line, newline, _ = found.partition(b"\n")
        return line + newline
