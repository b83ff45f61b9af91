"""Directory entries that are stored and restored: files, links and directories."""

import hashlib
import os
import stat
from contextlib import suppress
from typing import Final

from toolrunner.filesystem.beneath import Entry, Root
from toolrunner.filesystem.tree import rename_to_free
from toolrunner.fileworker.content.snapshot import NO_ETAG, hashed, reopened
from toolrunner.fileworker.values import EntryKind, Image

DIRECTORY_ETAG: Final = "directory"


def etag_at(entry: Entry) -> str | None:
    """Return the etag of an entry, empty if there is none; None if it cannot have one."""
    try:
        with entry.found() as found:
            mode = os.fstat(found).st_mode
            if stat.S_ISDIR(mode):
                return DIRECTORY_ETAG
            if stat.S_ISLNK(mode):
                return link_etag(os.fsencode(os.readlink("", dir_fd=found)))
            if not stat.S_ISREG(mode):
                return None
            fd = reopened(found)
    except FileNotFoundError:
        return NO_ETAG
    try:
        return hashed(fd) or None
    finally:
        os.close(fd)


def link_etag(target: bytes) -> str:
    """Return the etag of a link."""
    return f"link-{hashlib.sha256(target).hexdigest()}"


def inode_etag(entry: Entry) -> str:
    """Return an etag that an entry keeps when it is moved; empty if there is none."""
    result = entry.lstat()
    return NO_ETAG if result is None else f"inode-{result.st_dev:x}-{result.st_ino:x}"


def make_entry(entry: Entry, image: Image) -> None:
    """Create a link or a directory as it was.

    Raises:
        OSError: The path exists, or it cannot be created.
    """
    if image.kind is EntryKind.LINK:
        os.symlink(image.before or b"", os.fsencode(entry.name), dir_fd=entry.directory_fd)
    else:
        os.mkdir(entry.name, 0o700, dir_fd=entry.directory_fd)
        os.chmod(entry.name, image.mode or 0o755, dir_fd=entry.directory_fd)


def remove_entry(entry: Entry) -> None:
    """Remove a file, a link or an empty directory.

    Raises:
        OSError: It is not empty, or cannot be removed.
    """
    there = entry.lstat()
    if there is not None and stat.S_ISDIR(there.st_mode):
        os.rmdir(entry.name, dir_fd=entry.directory_fd)
    else:
        os.unlink(entry.name, dir_fd=entry.directory_fd)


def moved_back(root: Root, image: Image) -> bool:
    """Move an entry back to its old path; return whether it is there."""
    with (
        suppress(OSError),
        root.real_entry(image.path) as new,
        root.real_entry(image.moved_from) as old,
    ):
        if inode_etag(old) == image.after_etag:
            return True
        if inode_etag(new) == image.after_etag:
            rename_to_free(new.directory_fd, new.name, old.directory_fd, old.name)
            os.fsync(old.directory_fd)
            os.fsync(new.directory_fd)
            return True
    return False
