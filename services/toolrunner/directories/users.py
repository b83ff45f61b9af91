"""The Linux users of workspaces: one for each, from a range that is reserved on the node."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Users of the system and of its services have lower ids.
LOWEST: Final = 1_000
#: `nobody`, and -1 in 16 and in 32 bits, which mean no user.
RESERVED: Final = (65_534, 65_535, 2**32 - 1)


@dataclass(frozen=True, slots=True)
class UserRange:
    """The users of one node; no other node of the machine may have any of them.

    The two users below the first are the node's own: they belong to the range, and no workspace
    gets them.

    Attributes:
        first: The first user that a workspace can get.
        count: How many there are.
    """

    first: int
    count: int

    @property
    def last(self) -> int:
        """The last user that a workspace can get."""
        return self.first + self.count - 1

    @property
    def git(self) -> int:
        """The user of mirrors and unfinished clones."""
        return self.first - 1

    @property
    def command_check(self) -> int:
        """The user of the command check."""
        return self.first - 2

    def __contains__(self, user: int) -> bool:
        return self.first <= user <= self.last

    def problem(self) -> str:
        """Return why a node cannot have this range; empty if it can."""
        if self.command_check < LOWEST:
            return f"begins with {self.command_check}: users below {LOWEST} are the system's"
        for user in RESERVED:
            if self.command_check <= user <= self.last:
                return f"contains {user}, which is reserved"
        if self.last > max(RESERVED):
            return f"ends with {self.last}, and there are only {max(RESERVED)} users"
        return ""


#: Below the usual range of user namespaces of containers (65536), above users and services.
DEFAULT_RANGE: Final = UserRange(first=20_000, count=40_000)


class NoUserLeft(Exception):
    """All users of the range own a workspace; remove some."""


class Users:
    """Allocates users; one that still owns files stays allocated, also after a restart."""

    def __init__(self, directory: Path, user_range: UserRange) -> None:
        self.range = user_range
        self._directory = directory
        self._next = user_range.first

    def take(self) -> int:
        """Return a user that owns no workspace here.

        Raises:
            NoUserLeft: There is none.
        """
        taken = {*self._owners("files").values(), *self._owners("new").values()}
        # Not the lowest: processes of its last workspace may still be exiting.
        first, count = self.range.first, self.range.count
        for offset in range(count):
            uid = first + (self._next - first + offset) % count
            if uid not in taken:
                self._next = uid + 1
                return uid
        raise NoUserLeft

    def outside(self) -> tuple[str, ...]:
        """Return the workspaces that keep a user of another range, which this node had before."""
        return tuple(
            sorted(
                os.path.basename(os.path.dirname(files))
                for files, user in self._owners("files").items()
                # Files below an overlay belong to the owner of a registered directory.
                if user not in self.range and user != os.geteuid() and not os.path.ismount(files)
            )
        )

    def _owners(self, name: str) -> dict[str, int]:
        """Return the owner of each directory of files, or of files that are being made (`new`)."""
        found = {}
        try:
            with os.scandir(self._directory) as entries:
                for entry in entries:
                    files = os.path.join(entry.path, name)
                    try:
                        found[files] = os.stat(files).st_uid
                    except OSError:
                        continue
        except FileNotFoundError:
            return {}
        return found
