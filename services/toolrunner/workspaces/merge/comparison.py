"""Three-way comparison of a fork, its parent and their common base: the plan of a merge."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, assert_never

from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.tree import Found, Kind, walk
from toolrunner.workspaces.merge.fork_base import (
    DIGEST_BYTES_MAX,
    TEXT_BYTES_MAX,
    Base,
    BaseEntry,
    digest_and_text,
    is_text,
    link_digest,
)
from toolrunner.workspaces.merge.three_way import ConflictKind, Step, Version, decide, merge_lines

#: The staging directory of a merge.
STAGE: Final = ".parley-merge"
#: Repositories are merged by git, never by files.
PASSED_OVER: Final = frozenset({".git", STAGE})
#: Caches that programs write whenever they run, so that two forks never have the same. They are
#: made again, and what they know of a file does not hold for the merged one.
CACHES: Final = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
CACHED_SUFFIXES: Final = (".pyc", ".pyo")
#: The kernel opens no longer path; what is in a directory with such a path is not even listed.
PATH_BYTES_MAX: Final = 4095


class Strategy(StrEnum):
    """How conflicts are resolved; names are those of the proto."""

    REPORT = "report"
    KEEP_PARENT = "keep_parent"
    TAKE_FORK = "take_fork"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A conflicting path, with both versions if they are texts."""

    path: str
    kind: ConflictKind
    preview: bytes = b""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one path of the parent.

    Attributes:
        path: The path.
        before: The entry in the parent; None for none.
        kind: The new type; None if it is removed.
        content: The new content of a file; None to copy that of one side.
        is_parents: Whether that side is the parent.
        is_executable: Whether the new file is executable.
        is_forced: Whether a directory at the path is removed with all its entries.
    """

    path: str
    before: Found | None
    kind: Kind | None
    content: bytes | None = None
    is_executable: bool = False
    is_forced: bool = False
    is_parents: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes of a merge, and its conflicts.

    Attributes:
        left_out: What is not merged, the directory or file itself: pipes, sockets and devices of
            the fork, its entries whose paths are too long, and after them the caches that differ.
    """

    changes: tuple[Change, ...]
    conflicts: tuple[Conflict, ...]
    left_out: tuple[str, ...] = ()


class Side:
    """The fork or the parent: its current entries, read only as far as needed.

    Raises:
        OSError: Some of its entries cannot be listed.
    """

    def __init__(self, root: Root, base: Base, *, is_fork: bool) -> None:
        self.root = root
        self.found: dict[str, Found] = {}
        self.special: set[str] = set()
        for each in walk(root, without=PASSED_OVER, is_whole=True):
            if each.kind is Kind.SPECIAL:
                self.special.add(each.path)
            else:
                self.found[each.path] = each
        self._base = base
        self._is_fork = is_fork

    def version(self, path: str) -> Version | None:
        """Return the version of a path on this side."""
        found = self.found.get(path)
        if found is None:
            return None
        if found.kind is Kind.DIRECTORY:
            return Version(Kind.DIRECTORY)
        entry = self._base.entries.get(path)
        if entry is not None and self._is_untouched(found, entry):
            return base_version(entry)
        return Version(found.kind, self._content(found), found.is_executable)

    def differs(self, path: str) -> bool:
        """Return whether a path may have changed since the fork was made, without reading it."""
        found, entry = self.found.get(path), self._base.entries.get(path)
        if found is None or entry is None:
            return found is not None or base_version(entry) is not None
        if found.kind is Kind.DIRECTORY:
            return entry.kind is not Kind.DIRECTORY
        return not self._is_untouched(found, entry)

    def unmergeable(self, path: str) -> str:
        """Return the entry at or above a path that no merge can take over; empty for none."""
        if path in self.found and len(os.fsencode(path)) > PATH_BYTES_MAX:
            return path if self.differs(path) else ""
        while self.special and path and path not in self.special:
            path = path.rpartition("/")[0]
        return path if path in self.special else ""

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory at a path; the root is one."""
        found = self.found.get(path)
        return not path or (found is not None and found.kind is Kind.DIRECTORY)

    def text(self, path: str) -> bytes | None:
        """Return a file's content if it is a text of limited size."""
        try:
            with self.root.opened(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
                content = _read(fd, TEXT_BYTES_MAX + 1)
        except OSError:
            return None
        return content if len(content) <= TEXT_BYTES_MAX and is_text(content) else None

    def _is_untouched(self, found: Found, entry: BaseEntry) -> bool:
        before = entry.copy if self._is_fork else entry.original
        return found.kind is entry.kind and found.identity == before

    def _content(self, found: Found) -> str:
        unread = "/".join(map(str, found.identity))
        try:
            if found.kind is Kind.LINK:
                return link_digest(self.root, found.path)
            if found.seen.st_size > DIGEST_BYTES_MAX:
                return unread
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with self.root.opened(found.path, flags) as fd:
                return digest_and_text(fd)[0]
        except OSError:
            return unread


def base_version(entry: BaseEntry | None) -> Version | None:
    """Return the version of a path when the fork was made."""
    if entry is None or entry.kind is Kind.SPECIAL:
        return None
    if entry.kind is Kind.DIRECTORY:
        return Version(Kind.DIRECTORY)
    return Version(entry.kind, entry.content, entry.is_executable)


def compare(
    base: Base, fork: Side, parent: Side, *, strategy: Strategy, paths: tuple[str, ...] = ()
) -> Comparison:
    """Return the changes that a merge makes to the parent.

    Args:
        base: The common base.
        fork: The fork.
        parent: The parent.
        strategy: How conflicts are resolved.
        paths: Paths to merge, with everything below them; empty for all. A cache is merged only if
            it, or something in it, is named.
    """
    weighing = _Weighing(base, fork, parent, strategy)
    known = (*base.entries, *fork.found, *fork.special)
    for path in sorted({path for path in known if _is_wanted(path, paths)}):
        cache = cache_of(path)
        if cache and not any(_is_wanted(each, (cache,)) for each in paths):
            weighing.leave_out(path, cache)
        elif unmergeable := fork.unmergeable(path):
            weighing.left_out.add(unmergeable)
        else:
            weighing.weigh(path)
    weighing.check_places()
    return Comparison(
        tuple(weighing.changes[path] for path in sorted(weighing.changes)),
        tuple(weighing.conflicts[path] for path in sorted(weighing.conflicts)),
        tuple(sorted(weighing.left_out, key=lambda path: (bool(cache_of(path)), path))),
    )


@dataclass
class _Weighing:
    base: Base
    fork: Side
    parent: Side
    strategy: Strategy
    changes: dict[str, Change] = field(default_factory=dict)
    conflicts: dict[str, Conflict] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)

    def leave_out(self, path: str, cache: str) -> None:
        """Leave a path of a cache as it is; it goes only with the directory that it is in."""
        if PASSED_OVER.intersection(path.split("/")):
            return
        if not self.fork.is_directory(cache.rpartition("/")[0]):
            if path in self.parent.found:
                self._take(path, is_executable=False)
        elif cache not in self.left_out and self.fork.differs(path):
            self.left_out.add(cache)

    def weigh(self, path: str) -> None:
        """Decide about one path."""
        if PASSED_OVER.intersection(path.split("/")):
            return
        old = base_version(self.base.entries.get(path))
        ours = self.fork.version(path)
        if ours == old:
            return
        theirs = self.parent.version(path)
        decision = decide(old, ours, theirs)
        match decision:
            case Step.NOTHING:
                return
            case Step.TAKE:
                self._take(path, _mode(old, ours, theirs))
            case Step.MODE:
                self._keep(path, _mode(old, ours, theirs))
            case Step.LINES:
                self._merge(path, _mode(old, ours, theirs))
            case ConflictKind():
                self._conflict(path, decision)
            case _:
                assert_never(decision)

    def check_places(self) -> None:
        """Check that new entries have a parent directory, and replace no unknown entries."""
        for path, change in list(self.changes.items()):
            if change.kind is None or path not in self.changes:
                continue
            blocking = self._blocking(path)
            if blocking is not None:
                self._replace_or_report(path, blocking)
            elif change.kind is not Kind.DIRECTORY and self._keeps_strangers(change):
                self._conflict(path, ConflictKind.TYPE)

    def _blocking(self, path: str) -> str | None:
        """Return the nearest ancestor of a path that stays a non-directory in the parent."""
        above = path
        while above := above.rpartition("/")[0]:
            found = self.parent.found.get(above)
            change = self.changes.get(above)
            becomes = found.kind if change is None and found is not None else None
            if change is not None:
                becomes = change.kind
            if becomes is not None and becomes is not Kind.DIRECTORY:
                return above
        return None

    def _replace_or_report(self, path: str, blocking: str) -> None:
        if self.strategy is Strategy.TAKE_FORK:
            self.conflicts[path] = Conflict(path, ConflictKind.TYPE)
            self.changes[blocking] = Change(
                blocking, self.parent.found.get(blocking), Kind.DIRECTORY
            )
        else:
            del self.changes[path]
            self.conflicts[path] = Conflict(path, ConflictKind.TYPE)

    def _keeps_strangers(self, change: Change) -> bool:
        """Return whether a directory at the path has entries that are not removed by the merge."""
        if change.is_forced or change.before is None or change.before.kind is not Kind.DIRECTORY:
            return False
        inside = f"{change.path}/"
        return any(
            path.startswith(inside) and not _goes(self.changes.get(path))
            for path in self.parent.found
        )

    def _take(self, path: str, is_executable: bool, *, is_forced: bool = False) -> None:
        found = self.fork.found.get(path)
        self.changes[path] = Change(
            path,
            self.parent.found.get(path),
            None if found is None else found.kind,
            is_executable=is_executable,
            is_forced=is_forced,
        )

    def _keep(self, path: str, is_executable: bool) -> None:
        """Change whether a file is executable, and keep its content."""
        before = self.parent.found.get(path)
        self.changes[path] = Change(
            path, before, Kind.FILE, is_executable=is_executable, is_parents=True
        )

    def _merge(self, path: str, is_executable: bool) -> None:
        texts = (self.base.text(path), self.fork.text(path), self.parent.text(path))
        old, ours, theirs = texts
        if old is None or ours is None or theirs is None:
            self._conflict(path, ConflictKind.BINARY)
            return
        merged = merge_lines(old, ours, theirs)
        content = b"".join(merged.lines)
        if merged.conflicts:
            self._conflict(path, ConflictKind.CONTENT, content)
        else:
            before = self.parent.found.get(path)
            self.changes[path] = Change(path, before, Kind.FILE, content, is_executable)

    def _conflict(self, path: str, kind: ConflictKind, preview: bytes = b"") -> None:
        if kind is ConflictKind.ADDED_TWICE and not preview:
            preview = self._both(path)
        self.conflicts[path] = Conflict(path, kind, preview)
        if self.strategy is Strategy.TAKE_FORK:
            ours = self.fork.found.get(path)
            is_executable = ours is not None and ours.is_executable
            self._take(path, is_executable, is_forced=True)
        else:
            self.changes.pop(path, None)

    def _both(self, path: str) -> bytes:
        ours, theirs = self.fork.text(path), self.parent.text(path)
        if ours is None or theirs is None:
            return b""
        return b"".join(merge_lines(b"", ours, theirs).lines)


def cache_of(path: str) -> str:
    """Return the outermost cache that a path is or is in; empty for none."""
    parts = path.split("/")
    for depth, part in enumerate(parts, 1):
        if part in CACHES or part.endswith(CACHED_SUFFIXES):
            return "/".join(parts[:depth])
    return ""


def _goes(change: Change | None) -> bool:
    return change is not None and change.kind is None


def _mode(old: Version | None, ours: Version | None, theirs: Version | None) -> bool:
    """Return whether the result is executable: as on the side that changed it."""
    if ours is None:
        return False
    if theirs is None or old is None or ours.is_executable != old.is_executable:
        return ours.is_executable
    return theirs.is_executable


def _is_wanted(path: str, paths: Iterable[str]) -> bool:
    requested = tuple(paths)
    return not requested or any(path == each or path.startswith(f"{each}/") for each in requested)


def _read(fd: int, limit: int) -> bytes:
    pieces = []
    at = 0
    while at < limit and (data := os.pread(fd, limit - at, at)):
        pieces.append(data)
        at += len(data)
    return b"".join(pieces)
