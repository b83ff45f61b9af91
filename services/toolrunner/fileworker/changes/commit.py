"""Commit of planned changes: every file is replaced in one step, and all of them or none."""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Entry, Root
from toolrunner.filesystem.tree import exchanged
from toolrunner.fileworker.changes.drafts import Draft
from toolrunner.fileworker.changes.entries import etag_at, make_entry, moved_back, remove_entry
from toolrunner.fileworker.changes.git_guard import GitGuard
from toolrunner.fileworker.changes.leases import leased
from toolrunner.fileworker.content.snapshot import NO_ETAG, Snapshot, identity_of
from toolrunner.fileworker.values import EntryKind, Image

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
        with doing.root.real_place(draft.path) as place:
            GitGuard(doing.root, draft.guards_git).check(place, draft.shown)
            if draft.content is None:
                _check_same(place, draft)
                os.unlink(place.name, dir_fd=place.directory_fd)
            else:
                _replace(doing, place, draft, draft.content)
            doing.done.append(draft)
            os.fsync(place.directory_fd)
    except OSError as error:
        raise errors.refusal_of(error, draft.shown) from error


def _check_same(place: Entry, draft: Draft) -> None:
    """Refuse a file that has changed since it was read."""
    now = place.lstat()
    known = None if draft.before is None else draft.before.identity
    if (None if now is None else identity_of(now)) != known:
        raise errors.changed(draft.shown, "")


def _replace(doing: _Commit, place: Entry, draft: Draft, content: bytes) -> None:
    staged = staged_name(doing.token)
    try:
        _write_staged(place, staged, content, draft.before, draft.mode)
        _check_same(place, draft)
        put_in_place(place, staged, draft.before, draft.shown)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(staged, dir_fd=place.directory_fd)


def _write_staged(
    place: Entry, staged: str, content: bytes, before: Snapshot | None, mode: int
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(staged, flags, mode or NEW_FILE_MODE, dir_fd=place.directory_fd)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        if before is not None:
            keep_attributes(fd, place, before.mode)
        os.fsync(fd)
    finally:
        os.close(fd)


def keep_attributes(fd: int, place: Entry, mode: int) -> None:
    """Give a file the owner, mode and extended attributes of the one that it replaces."""
    with suppress(OSError), place.found() as old:
        link = f"/proc/self/fd/{old}"
        for name in os.listxattr(link):
            with suppress(OSError):
                os.setxattr(fd, name, os.getxattr(link, name))
        owner = os.fstat(old)
        os.fchown(fd, owner.st_uid, owner.st_gid)
    # After the owner, because changing that clears mode bits.
    os.fchmod(fd, mode)


def put_in_place(place: Entry, staged: str, before: Snapshot | None, shown: str) -> None:
    """Rename a staged file to its path; a new one never replaces another.

    Raises:
        FileRefused: The file was changed at the last moment; it is left as it is then.
    """
    fd = place.directory_fd
    if before is not None:
        _exchange(place, staged, before, shown)
        return
    try:
        os.link(staged, place.name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.rename(staged, place.name, src_dir_fd=fd, dst_dir_fd=fd)


def _exchange(place: Entry, staged: str, before: Snapshot, shown: str) -> None:
    """Replace a file; a concurrent change is detected after the exchange, and the file kept."""
    fd = place.directory_fd
    with leased(place) as lease:
        if not exchanged(fd, staged, fd, place.name):
            os.rename(staged, place.name, src_dir_fd=fd, dst_dir_fd=fd)
            return
        displaced = os.stat(staged, dir_fd=fd, follow_symlinks=False)
        if identity_of(displaced) != before.identity or lease.is_broken:
            exchanged(fd, staged, fd, place.name)
            raise errors.changed(shown, NO_ETAG)


def _take_back(doing: _Commit) -> None:
    for draft in reversed(doing.done):
        roll_back(doing.root, draft.image(), doing.token)
    for directory in reversed(doing.made):
        with suppress(OSError), doing.root.real_place(directory) as place:
            os.rmdir(place.name, dir_fd=place.directory_fd)


def roll_back(root: Root, image: Image, token: str) -> bool:
    """Restore one entry if the change has reached it; return whether it is as it was."""
    if image.kind is EntryKind.MOVED:
        return moved_back(root, image)
    if image.kind is EntryKind.TREE:
        return False
    try:
        with root.real_place(image.path) as place:
            with suppress(FileNotFoundError):
                os.unlink(staged_name(token), dir_fd=place.directory_fd)
            now = etag_at(place)
            if now == image.before_etag:
                return True
            if now != image.after_etag or not image.is_kept:
                return False
            _undo_at(place, image, token, is_there=bool(now))
            os.fsync(place.directory_fd)
            return True
    except FileNotFoundError:
        # Its directory was never created.
        return not image.before_etag
    except OSError:
        return False


def _undo_at(place: Entry, image: Image, token: str, *, is_there: bool) -> None:
    if image.before_etag and image.kind is EntryKind.FILE:
        _put_back(place, image.before or b"", image.mode or 0, token, is_new=not is_there)
        return
    if is_there:
        remove_entry(place)
    if image.before_etag:
        make_entry(place, image)


def clear_staged(root: Root, asked: str, token: str) -> None:
    """Remove the staged file of a path; the path itself is not touched."""
    with suppress(OSError, errors.FileRefused), root.place(root.relative(asked)) as place:
        os.unlink(staged_name(token), dir_fd=place.directory_fd)


def _put_back(place: Entry, content: bytes, mode: int, token: str, *, is_new: bool) -> None:
    staged = staged_name(token)
    _write_staged(place, staged, content, None, mode)
    os.chmod(staged, mode, dir_fd=place.directory_fd)
    if is_new:
        put_in_place(place, staged, None, place.path)
    else:
        directory = place.directory_fd
        os.rename(staged, place.name, src_dir_fd=directory, dst_dir_fd=directory)
    with suppress(FileNotFoundError):
        os.unlink(staged, dir_fd=place.directory_fd)
