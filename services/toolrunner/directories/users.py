"""The Linux users of workspaces: one for each, from a range that is reserved on the node."""

import os
from pathlib import Path
from typing import Final

#: Below the usual range of user namespaces of containers (65536), above users and services.
FIRST: Final = 20_000
COUNT: Final = 40_000


class NoUserLeft(Exception):
    """All users of the range own a workspace; remove some."""


class Users:
    """Allocates users; one that still owns files stays allocated, also after a restart."""

    def __init__(self, directory: Path, *, first: int = FIRST, count: int = COUNT) -> None:
        self._range = range(first, first + count)
        self._directory = directory
        self._next = first

    def take(self) -> int:
        """Return a user that owns no workspace here.

        Raises:
            NoUserLeft: There is none.
        """
        taken = self._taken()
        # Not the lowest: processes of its last workspace may still be exiting.
        for offset in range(len(self._range)):
            start = self._range.start
            uid = start + (self._next - start + offset) % len(self._range)
            if uid not in taken:
                self._next = uid + 1
                return uid
        raise NoUserLeft

    def _taken(self) -> set[int]:
        found = set()
        try:
            with os.scandir(self._directory) as entries:
                for entry in entries:
                    try:
                        found.add(os.stat(os.path.join(entry.path, "files")).st_uid)
                    except OSError:
                        continue
        except FileNotFoundError:
            return set()
        return found
