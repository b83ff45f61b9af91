"""Passwords that are known from breaches, in a file of ordered SHA-1 hashes.

The format is that in which Have I Been Pwned publishes its list, ordered by hash: on each line a
hash in hexadecimal digits, a colon and a number. That list has tens of gigabytes, so it is searched
where it lies, with a few dozen reads for a password. A list in another order would be searched in
vain, so lines all over the file are compared when it is opened, and those that a search reads.
"""

import hashlib
import logging
import os
import re
from pathlib import Path
from typing import Final

HASH_DIGITS: Final = 40
LINE_BYTES_MAX: Final = 128
#: At so many places, evenly spread, two lines are compared when a file is opened.
COMPARED_PLACES: Final = 512
_LINE: Final = re.compile(rb"[0-9A-Fa-f]{40}(?::[0-9]+)?\r?\n?")

_log = logging.getLogger(__name__)


class BreachedPasswords:
    """Searches a file for passwords; `close` closes it.

    Args:
        path: The file.

    Raises:
        OSError: It cannot be read.
        ValueError: It has another format, or another order than by hash.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            self._check()
        except BaseException:
            self._file.close()
            raise

    def contain(self, password: str) -> bool:
        """Return whether a password is in the file; for any number of threads."""
        wanted = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()
        # The line of the password begins between these two, if there is one.
        first, end = 0, self._size()
        lowest, highest = b"", b""
        while first < end:
            middle = (first + end) // 2
            line_start, line = self._line_from(middle)
            found = _hash_of(line)
            # There is no line where the file ends by now: it may be written while it is read.
            if not found or line_start >= end:
                end = middle
                continue
            if found < lowest or (highest and found > highest):
                _log.error("the list of breached passwords is not ordered: passwords are missed")
                return False
            if found == wanted:
                return True
            if found > wanted:
                end, highest = middle, found
            else:
                first, lowest = line_start + len(line), found
        return False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _check(self) -> None:
        """Compare lines at places that are spread over the file, each with the next one.

        Raises:
            ValueError: One of them is no hash, or they are not ordered.
        """
        size = self._size()
        before = b""
        for number in range(COMPARED_PLACES):
            start, line = self._line_from(size * number // COMPARED_PLACES)
            following = self._read(start + len(line))
            for each in (line, following) if number else (line,):
                # The file may end here, also with an empty line.
                if _LINE.fullmatch(each) is None and (not number or each.strip()):
                    where = f"the line at byte {start}" if number else "its first line"
                    raise ValueError(f"{where} is no SHA-1 hash in hexadecimal digits")
            hashes = [each for each in map(_hash_of, (before, line, following)) if each]
            if hashes != sorted(hashes):
                raise ValueError(
                    f"it is not ordered by hash, see its lines at byte {start}: sort it, or "
                    "download the list that is ordered by hash"
                )
            before = line

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

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


def _hash_of(line: bytes) -> bytes:
    return line[:HASH_DIGITS].strip().upper()
