"""Disk usage of trees that untrusted programs created and modify concurrently.

Theory: no existing file may be missed. A directory without permissions for its owner is made
readable while it is read; one that cannot be opened is reported. Names are relative to an open
directory, because a whole path may exceed the kernel's limit. A directory that was renamed between
being listed and being opened is noticed by its inode, and the tree is walked again.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem.beneath import Root

BLOCK_BYTES: Final = 512
#: Longer relative paths are split: a directory on the way is kept open as a new base.
PATH_BYTES_MAX: Final = 2048
#: So many directories are kept open at once; deeper ones count as unreadable.
ANCHORS_MAX: Final = 64
ROUNDS_MAX: Final = 3
OPENING_TRIES: Final = 3
_SEARCH: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
#: It was moved, or replaced by something else.
_MOVED: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV)
#: Errors of this process and not of a directory.
_OURS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Walked:
    """The measured disk usage of trees.

    Attributes:
        disk_bytes: Bytes on disk.
        inodes: Files and directories, each once.
        unread: Directories that could not be read.
    """

    disk_bytes: int
    inodes: int
    unread: int


def walked(paths: Iterable[str], *, entries_max: int) -> Walked:
    """Return the disk usage below some directories; links are not followed.

    Args:
        paths: The directories; missing ones count as empty.
        entries_max: Entries after which to stop; the result is then a lower bound.

    Raises:
        OSError: This process has no descriptors or memory left.
    """
    paths = tuple(paths)
    most = Walked(0, 0, 0)
    for _ in range(ROUNDS_MAX):
        walk = _Walk(entries_max)
        for path in paths:
            walk.add(path)
        most = Walked(
            max(most.disk_bytes, walk.disk_bytes), max(most.inodes, walk.inodes), walk.unread
        )
        if not walk.missed - walk.visited:
            break
    return most


@dataclass(slots=True)
class _Anchor:
    """A directory that is kept open, as long as directories below it are pending."""

    root: Root
    users: int = 1


@dataclass(frozen=True, slots=True)
class _Enter:
    """A directory to read."""

    anchor: _Anchor
    path: str
    identity: Identity


@dataclass(frozen=True, slots=True)
class _Close:
    """A directory whose mode was changed, to be restored."""

    fd: int
    before: int
    during: int


@dataclass(slots=True)
class _Walk:
    """One pass over the trees."""

    entries_max: int
    disk_bytes: int = 0
    inodes: int = 0
    unread: int = 0
    visited: set[Identity] = field(default_factory=set)
    missed: set[Identity] = field(default_factory=set)
    counted: set[Identity] = field(default_factory=set)
    anchors: int = 0
    pending: list[_Enter | _Close] = field(default_factory=list)

    def add(self, path: str) -> None:
        """Count a directory and all entries below it."""
        try:
            root = Root(os.open(path, _SEARCH | os.O_CLOEXEC), path)
        except OSError as error:
            self._note(error, None)
            return
        top = os.fstat(root.fd)
        anchor = _Anchor(root)
        self.anchors += 1
        self._count(top)
        self.pending.append(_Enter(anchor, "", (top.st_dev, top.st_ino)))
        try:
            while self.pending:
                self._step(self.pending.pop())
        finally:
            while self.pending:
                match self.pending.pop():
                    case _Enter(anchor=left):
                        self._release(left)
                    case _Close() as closing:
                        _close_again(closing)

    def _step(self, step: _Enter | _Close) -> None:
        match step:
            case _Close():
                _close_again(step)
            case _Enter() if self.inodes >= self.entries_max:
                self._release(step.anchor)
            case _Enter():
                try:
                    self._enter(step)
                except OSError as error:
                    self._note(error, step.identity)
                finally:
                    self._release(step.anchor)

    def _enter(self, step: _Enter) -> None:
        with self._listed(step) as fd:
            seen = os.fstat(fd)
            if (seen.st_dev, seen.st_ino) != step.identity:
                raise OSError(errno.ENOENT, "another directory is there now")
            self.visited.add(step.identity)
            anchor, prefix = step.anchor, f"{step.path}/" if step.path else ""
            if len(os.fsencode(prefix)) > PATH_BYTES_MAX:
                if self.anchors >= ANCHORS_MAX:
                    raise OSError(errno.ENAMETOOLONG, "it is too deep")
                anchor, prefix = _Anchor(Root(os.dup(fd), ""), 0), ""
                self.anchors += 1
            try:
                for name in os.listdir(fd):
                    self._look(fd, name, anchor, prefix, seen.st_dev)
            finally:
                if not anchor.users:
                    anchor.users = 1
                    self._release(anchor)

    def _look(self, fd: int, name: str, anchor: _Anchor, prefix: str, device: int) -> None:
        try:
            seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            self._note(error, None)
            return
        if seen.st_dev != device:
            return
        self._count(seen)
        if stat.S_ISDIR(seen.st_mode):
            anchor.users += 1
            identity = (seen.st_dev, seen.st_ino)
            self.pending.append(_Enter(anchor, prefix + name, identity))

    def _count(self, seen: os.stat_result) -> None:
        identity = (seen.st_dev, seen.st_ino)
        if identity in self.counted:
            return
        if seen.st_nlink > 1 or stat.S_ISDIR(seen.st_mode):
            self.counted.add(identity)
        self.inodes += 1
        self.disk_bytes += seen.st_blocks * BLOCK_BYTES

    @contextmanager
    def _listed(self, step: _Enter) -> Iterator[int]:
        """Open a directory for listing, with its mode changed if needed."""
        fd = self._opened(step)
        try:
            # It must be searchable too, until all entries below it were read.
            if not os.access(".", os.X_OK, dir_fd=fd, effective_ids=True):
                self._open_up(step)
            yield fd
        finally:
            os.close(fd)

    def _opened(self, step: _Enter) -> int:
        for _ in range(OPENING_TRIES):
            with suppress(PermissionError):
                return step.anchor.root.open(step.path, _LIST, through_links=False)
            self._open_up(step)
        return step.anchor.root.open(step.path, _LIST, through_links=False)

    def _open_up(self, step: _Enter) -> None:
        """Give the owner access to a directory, until all entries below it were read."""
        root = step.anchor.root
        fd = root.open(step.path, _SEARCH, through_links=False) if step.path else os.dup(root.fd)
        try:
            before = stat.S_IMODE(os.fstat(fd).st_mode)
            during = before | stat.S_IRUSR | stat.S_IXUSR
            os.chmod(f"/proc/self/fd/{fd}", during)
        except BaseException:
            os.close(fd)
            raise
        self.pending.append(_Close(fd, before, during))

    def _note(self, error: OSError, identity: Identity | None) -> None:
        """Record that something was not read."""
        if error.errno in _OURS:
            raise error
        if error.errno not in _MOVED:
            self.unread += 1
        elif identity is not None:
            self.missed.add(identity)

    def _release(self, anchor: _Anchor) -> None:
        anchor.users -= 1
        if not anchor.users:
            self.anchors -= 1
            anchor.root.close()


def _close_again(closing: _Close) -> None:
    """Restore the mode of a directory, unless it was changed meanwhile."""
    try:
        if stat.S_IMODE(os.fstat(closing.fd).st_mode) == closing.during:
            os.chmod(f"/proc/self/fd/{closing.fd}", closing.before)
    except OSError:
        # It was removed, or has another owner; nothing depends on it.
        return
    finally:
        os.close(closing.fd)
