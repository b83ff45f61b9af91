"""Reads the tree of a workspace, and finds what changed since it was last read.

Theory: a file whose inode, size and times are the same is the same; only others are read. Times
have a coarse clock, so a file that changed shortly before it was read is read again next time.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from toolrunner.checkpoints.domain import OUTSIDE, Change, Entry, EntryKind, Turn
from toolrunner.checkpoints.store import CheckpointStore, decoded
from toolrunner.filesystem.beneath import DIRECTORY_MODE, Root
from toolrunner.filesystem.tree import Found, Kind, look_if_allowed, walk

#: Repositories are changed by git, and the others are made again by the programs that made them.
SKIPPED: Final = frozenset(
    {
        ".git",
        ".parley-merge",
        ".venv",
        "node_modules",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
    }
)
ENTRIES_MAX: Final = 100_000
#: The largest file whose content is kept.
CONTENT_BYTES_MAX: Final = 16 * 1024 * 1024
#: The longest that contents are read in one scan; the rest is read by the next ones.
READ_S: Final = 20.0
READ_BYTES: Final = 1024 * 1024
RACY_NS: Final = 50_000_000
DIRECTORY_ETAG: Final = "directory"
SPECIAL_ETAG: Final = "special"


class TooManyEntries(Exception):
    """The tree has more entries than are read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a tree is read."""

    entries_max: int = ENTRIES_MAX
    content_bytes_max: int = CONTENT_BYTES_MAX
    read_s: float = READ_S


@dataclass
class Scan:
    """One pass over a tree, in a transaction of the store."""

    store: CheckpointStore
    root: Root
    limits: Limits
    room_bytes: int = field(init=False)
    until_s: float = field(init=False)
    begun_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self.room_bytes = self.store.bounds.bytes_max - self.store.stored_bytes()
        self.until_s = time.monotonic() + self.limits.read_s
        self.begun_ns = time.time_ns()

    def run(self, authors: list[Turn], now: float) -> int:
        """Store the tree; its changes are those of `authors`, or of no turn.

        Returns the number of entries.

        Raises:
            TooManyEntries: There are too many; nothing was stored.
        """
        known = self.store.tree()
        is_first = not self.store.is_scanned()
        changes: list[tuple[str, Entry | None, Entry | None]] = []
        rows: list[tuple[str, bytes | None, Entry | None]] = []
        entries = 0
        for found in walk(self.root, without=SKIPPED):
            entries += 1
            if entries > self.limits.entries_max:
                raise TooManyEntries
            identity = identity_of(found)
            before_identity, encoded = known.pop(os.fsencode(found.path), (None, None))
            if encoded is not None and before_identity == identity:
                continue
            before = decoded(encoded)
            after = self.read(found)
            rows.append((found.path, self._lasting(found, after, identity), after))
            if before is not None and before.etag == _unread_etag(found):
                # It was not read last time, and is the same.
                continue
            if before is None or not before.equals(after) or before.mode != after.mode:
                changes.append((found.path, before, after))
        for name, (_, encoded) in known.items():
            path = os.fsdecode(name)
            changes.append((path, decoded(encoded), None))
            rows.append((path, None, None))
        self.store.put_tree(rows)
        if not is_first:
            self._add(changes, authors or [OUTSIDE], now)
        self.store.set_scanned(now)
        return entries

    def read(self, found: Found) -> Entry:
        """Return an entry, its content stored if there is room."""
        mode = stat.S_IMODE(found.seen.st_mode)
        match found.kind:
            case Kind.DIRECTORY:
                return Entry(EntryKind.DIRECTORY, DIRECTORY_ETAG, mode)
            case Kind.LINK:
                target = _link_target(self.root, found.path)
                etag = f"link-{hashlib.sha256(target).hexdigest()}"
                self.store.put_content(etag, target)
                return Entry(EntryKind.LINK, etag, mode)
            case Kind.FILE:
                return self._file(found, mode)
            case _:
                return Entry(EntryKind.SPECIAL, SPECIAL_ETAG, mode, is_kept=False)

    def look(self, path: str) -> Entry | None:
        """Return the entry that is at a path now, its content stored."""
        found = look_if_allowed(self.root, path)
        return None if found is None else self.read(found)

    def _file(self, found: Found, mode: int) -> Entry:
        size = found.seen.st_size
        is_small = size <= min(self.limits.content_bytes_max, self.room_bytes)
        if is_small and time.monotonic() < self.until_s:
            content = _content(self.root, found.path, self.limits.content_bytes_max)
            if content is not None:
                etag = hashlib.sha256(content).hexdigest()
                self.store.put_content(etag, content)
                self.room_bytes -= len(content)
                return Entry(EntryKind.FILE, etag, mode)
        return Entry(EntryKind.FILE, _unread_etag(found), mode, is_kept=False)

    def _lasting(self, found: Found, entry: Entry, identity: bytes) -> bytes | None:
        """Return the identity of an entry, None if it has to be read again next time."""
        is_racy = found.seen.st_ctime_ns > self.begun_ns - RACY_NS
        is_cut = not entry.is_kept and time.monotonic() >= self.until_s
        return None if entry.kind is EntryKind.FILE and (is_racy or is_cut) else identity

    def _add(
        self,
        changes: list[tuple[str, Entry | None, Entry | None]],
        authors: list[Turn],
        now: float,
    ) -> None:
        for turn in authors:
            number = self.store.begin(turn, now, is_open=False)
            for path, before, after in changes:
                is_shared = len(authors) > 1
                self.store.add_change(number, Change(0, path, before, after, turn, is_shared))


def identity_of(found: Found) -> bytes:
    """Return what changes whenever an entry does; the times of a directory change too often."""
    seen = found.seen
    if found.kind is Kind.DIRECTORY:
        return b"%d" % seen.st_mode
    return b"%d %d %d %d" % (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def _unread_etag(found: Found) -> str:
    """Return the substitute etag of a file that is not read."""
    return f"unread-{identity_of(found).decode()}"


def _link_target(root: Root, path: str) -> bytes:
    above, _, name = path.rpartition("/")
    try:
        with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
            return os.readlink(os.fsencode(name), dir_fd=fd)
    except OSError:
        return b""


def _content(root: Root, path: str, bytes_max: int) -> bytes | None:
    """Return the content of a file, None if it cannot be read or has grown too large."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    try:
        fd = root.open(path, flags)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        pieces, size = [], 0
        while data := os.read(fd, READ_BYTES):
            pieces.append(data)
            size += len(data)
            if size > bytes_max:
                return None
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class KeptChange:
    """A change that a file tool is about to make.

    Attributes:
        path: The path.
        before: The entry that is there.
        content: Its content.
        after: The entry that will be there.
    """

    path: str
    before: Entry | None
    content: bytes | None
    after: Entry | None


def new_directories(root: Root, changes: Iterable[KeptChange]) -> list[KeptChange]:
    """Return the directories that a change creates on its way."""
    made: dict[str, KeptChange] = {}
    for change in changes:
        above = change.path.rpartition("/")[0]
        while change.after is not None and above and above not in made:
            if look_if_allowed(root, above) is not None:
                break
            after = Entry(EntryKind.DIRECTORY, DIRECTORY_ETAG, DIRECTORY_MODE)
            made[above] = KeptChange(above, None, None, after)
            above = above.rpartition("/")[0]
    return [made[path] for path in sorted(made)]
