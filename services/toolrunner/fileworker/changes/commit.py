"""Commit of planned changes: every file is replaced in one step, and all of them or none."""

import errno
import fcntl
import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Entry, Root
from toolrunner.filesystem.tree import exchanged
from toolrunner.fileworker.changes.drafts import Draft
from toolrunner.fileworker.changes.entries import etag_at, make_entry, moved_back, remove_entry
from toolrunner.fileworker.changes.git_guard import GitGuard
from toolrunner.fileworker.content.snapshot import NO_ETAG, Snapshot, identity_of, reopened
from toolrunner.fileworker.values import EntryKind, Image

#: A process that holds a file open for longer is not waited for.
TRIES_MAX: Final = 20
PAUSE_S: Final = 0.001


class Lease:
    """Reports whether a file was opened for writing since the lease was taken, if supported."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    @property
    def is_broken(self) -> bool:
        """Whether a process opens the file for writing; it blocks until the lease is released."""
        return self._fd is not None and fcntl.fcntl(self._fd, fcntl.F_GETLEASE) != fcntl.F_RDLCK


@contextmanager
def leased(entry: Entry) -> Iterator[Lease]:
    """Take a lease on a file in a context; without effect where leases are not supported.

    Some file systems do not support them, and the kernel refuses them for files of another user.
    """
    fd = None
    with suppress(OSError):
        with entry.found() as found:
            fd = reopened(found)
        # The kernel signals a lease break; this signal is ignored by default.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
    try:
        yield Lease(fd if fd is not None and _is_taken(fd) else None)
    finally:
        if fd is not None:
            os.close(fd)


def _is_taken(fd: int) -> bool:
    for _ in range(TRIES_MAX):
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            # A process writes just now, and may close the file in a moment.
            select.select([], [], [], PAUSE_S)
        except OSError:
            return False
        else:
            return True
    return False


NEW_FILE_MODE: Final = 0o644
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK})


@dataclass
class _Commit:
    """The progress of a commit, so that it can be rolled back."""

    root: Root
    token: str
    made: list[str] = field(default_factory=list)
    done: list[Draft] = field(default_factory=list)


def staged_name(token: str) -> str:
    """Return the name of a staged file that will replace another in its directory."""
    return f".parley-{token}.tmp"


def commit(root: Root, drafts: Sequence[Draft], token: str) -> None:
    """Write all drafts, or none of them.

    Raises:
        FileRefused: A file has changed meanwhile, or cannot be written; nothing is changed.
    """
    doing = _Commit(root, token)
    try:
        # Writes before deletions: during a move at least one of both files exists.
        for draft in sorted(drafts, key=lambda draft: draft.content is None):
            _apply(doing, draft)
    except BaseException:
        _take_back(doing)
        raise


def _apply(doing: _Commit, draft: Draft) -> None:
    above = draft.path.rpartition("/")[0]
    try:
        if draft.content is not None and above:
            doing.made += doing.root.make_directories(above)
        with doing.root.real_entry(draft.path) as entry:
            GitGuard(doing.root, draft.guards_git).check(entry, draft.shown)
            if draft.content is None:
                _check_same(entry, draft)
                os.unlink(entry.name, dir_fd=entry.directory_fd)
            else:
                _replace(doing, entry, draft, draft.content)
            doing.done.append(draft)
            os.fsync(entry.directory_fd)
    except OSError as error:
        raise errors.refusal_of(error, draft.shown) from error


def _check_same(entry: Entry, draft: Draft) -> None:
    """Refuse a file that has changed since it was read."""
    now = entry.lstat()
    known = None if draft.before is None else draft.before.identity
    if (None if now is None else identity_of(now)) != known:
        raise errors.changed(draft.shown, "")


def _replace(doing: _Commit, entry: Entry, draft: Draft, content: bytes) -> None:
    staged = staged_name(doing.token)
    try:
        write_staged(entry, staged, content, draft.before, draft.mode)
        _check_same(entry, draft)
        put_in_place(entry, staged, draft.before, draft.shown)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(staged, dir_fd=entry.directory_fd)


def write_staged(
    entry: Entry, staged: str, content: bytes, before: Snapshot | None, mode: int
) -> None:
    """Write a content to a new file, with the attributes of the one that it will replace."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(staged, flags, mode or NEW_FILE_MODE, dir_fd=entry.directory_fd)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        if before is not None:
            keep_attributes(fd, entry, before.mode)
        os.fsync(fd)
    finally:
        os.close(fd)


def keep_attributes(fd: int, entry: Entry, mode: int) -> None:
    """Give a file the owner, mode and extended attributes of the one that it replaces."""
    with suppress(OSError), entry.found() as old:
        link = f"/proc/self/fd/{old}"
        for name in os.listxattr(link):
            with suppress(OSError):
                os.setxattr(fd, name, os.getxattr(link, name))
        owner = os.fstat(old)
        os.fchown(fd, owner.st_uid, owner.st_gid)
    # After the owner, because changing that clears mode bits.
    os.fchmod(fd, mode)


def put_in_place(entry: Entry, staged: str, before: Snapshot | None, shown: str) -> None:
    """Rename a staged file to its path; a new one never replaces another.

    Raises:
        FileRefused: The file was changed at the last moment; it is left as it is then.
    """
    fd = entry.directory_fd
    if before is not None:
        _exchange(entry, staged, before, shown)
        return
    try:
        os.link(staged, entry.name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.rename(staged, entry.name, src_dir_fd=fd, dst_dir_fd=fd)


def _exchange(entry: Entry, staged: str, before: Snapshot, shown: str) -> None:
    """Replace a file; a concurrent change is detected after the exchange, and the file kept."""
    fd = entry.directory_fd
    with leased(entry) as lease:
        if not exchanged(fd, staged, fd, entry.name):
            os.rename(staged, entry.name, src_dir_fd=fd, dst_dir_fd=fd)
            return
        displaced = os.stat(staged, dir_fd=fd, follow_symlinks=False)
        if identity_of(displaced) != before.identity or lease.is_broken:
            exchanged(fd, staged, fd, entry.name)
            raise errors.changed(shown, NO_ETAG)


def _take_back(doing: _Commit) -> None:
    for draft in reversed(doing.done):
        roll_back(doing.root, draft.image(), doing.token)
    for directory in reversed(doing.made):
        with suppress(OSError), doing.root.real_entry(directory) as entry:
            os.rmdir(entry.name, dir_fd=entry.directory_fd)


def roll_back(root: Root, image: Image, token: str) -> bool:
    """Restore one entry if the change has reached it; return whether it is as it was."""
    if image.kind is EntryKind.MOVED:
        return moved_back(root, image)
    if image.kind is EntryKind.TREE:
        return False
    try:
        with root.real_entry(image.path) as entry:
            with suppress(FileNotFoundError):
                os.unlink(staged_name(token), dir_fd=entry.directory_fd)
            now = etag_at(entry)
            if now == image.before_etag:
                return True
            if now != image.after_etag or not image.is_kept:
                return False
            _undo_at(entry, image, token, is_there=bool(now))
            os.fsync(entry.directory_fd)
            return True
    except FileNotFoundError:
        # Its directory was never created.
        return not image.before_etag
    except OSError:
        return False


def _undo_at(entry: Entry, image: Image, token: str, *, is_there: bool) -> None:
    if image.before_etag and image.kind is EntryKind.FILE:
        _put_back(entry, image.before or b"", image.mode or 0, token, is_new=not is_there)
        return
    if is_there:
        remove_entry(entry)
    if image.before_etag:
        make_entry(entry, image)


def clear_staged(root: Root, asked: str, token: str) -> None:
    """Remove the staged file of a path; the path itself is not touched."""
    with suppress(OSError, errors.FileRefused), root.entry(root.relative(asked)) as entry:
        os.unlink(staged_name(token), dir_fd=entry.directory_fd)


def _put_back(entry: Entry, content: bytes, mode: int, token: str, *, is_new: bool) -> None:
    staged = staged_name(token)
    write_staged(entry, staged, content, None, mode)
    os.chmod(staged, mode, dir_fd=entry.directory_fd)
    if is_new:
        put_in_place(entry, staged, None, entry.path)
    else:
        directory = entry.directory_fd
        os.rename(staged, entry.name, src_dir_fd=directory, dst_dir_fd=directory)
    with suppress(FileNotFoundError):
        os.unlink(staged, dir_fd=entry.directory_fd)
