"""Copying trees: by sharing blocks where the file system can, else byte by byte."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolrunner.files.beneath import Root
from toolrunner.hosting.walking import Found, Kind, walk

FICLONE: Final = 0x40049409
CHUNK_BYTES: Final = 1024 * 1024
#: Nobody becomes somebody else by running a copy.
MODE_KEPT: Final = 0o777

_UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS)


@dataclass(slots=True)
class Copied:
    """What was copied."""

    files: int = 0
    content_bytes: int = 0
    shared_files: int = 0  # Of these files, those that share their blocks with the original.
    left_out: int = 0  # Sockets, pipes, devices, and what may not be read.


OnFile = Callable[[Found, int], None]


def copy_tree(
    source: Root,
    target: Root,
    *,
    on_entry: OnFile | None = None,
    check: Callable[[], None] = lambda: None,
) -> Copied:
    """Copy everything below one root to another, empty one; two names of a file become two files.

    Args:
        source: What to copy.
        target: Where to; nobody else works there.
        on_entry: Called for every entry that was copied, with the original as it was before and
            the descriptor of the copy of a file, -1 for anything else.
        check: Called between entries; raises if the copy is no longer wanted.

    Raises:
        OSError: The target does not take it.
    """
    copied = Copied()
    directories: list[Found] = []
    for found in walk(source):
        check()
        match found.kind:
            case Kind.DIRECTORY:
                _make_directory(target, found)
                directories.append(found)
                if on_entry is not None:
                    on_entry(found, -1)
            case Kind.LINK:
                if not _copy_link(source, target, found):
                    copied.left_out += 1
                elif on_entry is not None:
                    on_entry(found, -1)
            case Kind.FILE:
                if not _copy_file(source, target, found, copied, on_entry):
                    copied.left_out += 1
            case Kind.SPECIAL:
                copied.left_out += 1
    for found in reversed(directories):
        with target.opened(found.path, os.O_RDONLY | os.O_DIRECTORY) as fd:
            os.fchmod(fd, found.seen.st_mode & MODE_KEPT)
            os.utime(fd, ns=(found.seen.st_atime_ns, found.seen.st_mtime_ns))
    return copied


def _make_directory(target: Root, found: Found) -> None:
    above, _, name = found.path.rpartition("/")
    with target.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
        os.mkdir(name, 0o700, dir_fd=fd)


def _copy_link(source: Root, target: Root, found: Found) -> bool:
    above, _, name = found.path.rpartition("/")
    try:
        with source.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
            leads_to = os.readlink(name, dir_fd=fd)
    except OSError:
        return False
    with target.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
        os.symlink(leads_to, name, dir_fd=fd)
    return True


def _copy_file(
    source: Root, target: Root, found: Found, copied: Copied, on_entry: OnFile | None
) -> bool:
    try:
        original = source.open(found.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        seen = os.fstat(original)
        if not stat.S_ISREG(seen.st_mode):
            return False
        copy = target.open(found.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            copied.shared_files += copy_content(original, copy)
            os.fchmod(copy, seen.st_mode & MODE_KEPT)
            os.utime(copy, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            copied.files += 1
            copied.content_bytes += seen.st_size
            if on_entry is not None:
                on_entry(Found(found.path, Kind.FILE, seen), copy)
        finally:
            os.close(copy)
    finally:
        os.close(original)
    return True


def copy_content(original: int, copy: int) -> bool:
    """Copy a file's content, holes as holes; return whether the blocks are shared.

    Raises:
        OSError: It cannot be read, or there is no room.
    """
    try:
        fcntl.ioctl(copy, FICLONE, original)
        return True
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    end = os.fstat(original).st_size
    offset = 0
    while offset < end:
        try:
            start = os.lseek(original, offset, os.SEEK_DATA)
            stop = min(end, os.lseek(original, start, os.SEEK_HOLE))
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            raise
        _copy_range(original, copy, start, stop)
        offset = stop
    os.ftruncate(copy, end)
    return False


def _copy_range(original: int, copy: int, start: int, stop: int) -> None:
    at = start
    while at < stop:
        try:
            done = os.copy_file_range(original, copy, min(CHUNK_BYTES * 16, stop - at), at, at)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            done = os.pwrite(copy, os.pread(original, min(CHUNK_BYTES, stop - at), at), at)
        if done == 0:
            return
        at += done
