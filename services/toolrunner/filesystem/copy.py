"""Copies of directory trees: by shared blocks (reflink) where supported, else by bytes."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.tree import BLOCK_BYTES, Found, Kind, walk

FICLONE: Final = 0x40049409
CHUNK_BYTES: Final = 1024 * 1024
#: Cloning the blocks of a smaller file costs more than copying them.
SMALL_BYTES: Final = 256 * 1024
#: Copies have no setuid or setgid bit.
MODE_KEPT: Final = 0o777

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS)


@dataclass(slots=True)
class Copied:
    """The result of a copy."""

    files: int = 0
    content_bytes: int = 0
    shared_files: int = 0  # Of these files, those that share their blocks with the original.
    left_out: int = 0  # Sockets, pipes, devices, and files that may not be read.
    disk_bytes: int = 0  # The disk space of the copy.
    entries: int = 0  # Directories and links included.


#: Called with every entry: the original as it was before, the descriptor of the copy of a file (-1
#: for other entries), and the content of a small file.
OnEntry = Callable[[Found, int, bytes | None], None]


class _Directories:
    """Directories below a root; the last used one is kept open."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._path: str | None = None
        self._fd = -1

    def place(self, path: str) -> tuple[int, str]:
        """Return the parent directory of a path, and its name there.

        Raises:
            OSError: There is none.
        """
        above, _, name = path.rpartition("/")
        if above != self._path:
            self.close()
            self._fd = self._root.open(above, os.O_PATH | os.O_DIRECTORY)
            self._path = above
        return self._fd, name

    def close(self) -> None:
        """Close the directory."""
        if self._fd >= 0:
            os.close(self._fd)
        self._path, self._fd = None, -1


def copy_tree(
    source: Root,
    target: Root,
    *,
    owner: int | None = None,
    on_entry: OnEntry = lambda found, copy, content: None,
    check: Callable[[Copied], None] = lambda copied: None,
) -> Copied:
    """Copy everything below one root to another, empty one; hard links become separate files.

    Args:
        source: The tree to copy.
        target: The target; no other process writes there.
        owner: The user that everything copied belongs to, before `on_entry` is called; None for
            that of this process.
        on_entry: Called with every entry that was copied.
        check: Called between entries; raises to stop the copy.

    Raises:
        OSError: The target cannot be written.
    """
    copying = _Copying(_Directories(source), _Directories(target), on_entry, owner)
    directories: list[Found] = []
    try:
        for found in walk(source):
            check(copying.copied)
            copying.copy(found)
            if found.kind is Kind.DIRECTORY:
                directories.append(found)
    finally:
        copying.source.close()
        copying.target.close()
    for found in reversed(directories):
        with target.opened(found.path, os.O_RDONLY | os.O_DIRECTORY) as fd:
            if owner is not None:
                os.fchown(fd, owner, owner)
            os.fchmod(fd, found.seen.st_mode & MODE_KEPT)
            os.utime(fd, ns=(found.seen.st_atime_ns, found.seen.st_mtime_ns))
    return copying.copied


@dataclass
class _Copying:
    source: _Directories
    target: _Directories
    on_entry: OnEntry
    owner: int | None
    copied: Copied = field(default_factory=Copied)

    def copy(self, found: Found) -> None:
        """Copy one entry; of a directory only itself."""
        self.copied.entries += 1
        match found.kind:
            case Kind.DIRECTORY:
                fd, name = self.target.place(found.path)
                os.mkdir(name, 0o700, dir_fd=fd)
                self.on_entry(found, -1, None)
            case Kind.LINK:
                self._copy_link(found)
            case Kind.FILE:
                self._copy_file(found)
            case Kind.SPECIAL:
                self.copied.left_out += 1

    def _copy_link(self, found: Found) -> None:
        try:
            fd, name = self.source.place(found.path)
            leads_to = os.readlink(name, dir_fd=fd)
        except OSError:
            self.copied.left_out += 1
            return
        fd, name = self.target.place(found.path)
        os.symlink(leads_to, name, dir_fd=fd)
        if self.owner is not None:
            os.chown(name, self.owner, self.owner, dir_fd=fd, follow_symlinks=False)
        self.on_entry(found, -1, None)

    def _copy_file(self, found: Found) -> None:
        try:
            fd, name = self.source.place(found.path)
            original = os.open(name, _READ, dir_fd=fd)
        except OSError:
            self.copied.left_out += 1
            return
        try:
            seen = os.fstat(original)
            if not stat.S_ISREG(seen.st_mode):
                self.copied.left_out += 1
                return
            fd, name = self.target.place(found.path)
            copy = os.open(name, _CREATE, 0o600, dir_fd=fd)
            try:
                content = self._copy_content(original, copy, seen.st_size)
                if self.owner is not None:
                    os.fchown(copy, self.owner, self.owner)
                os.fchmod(copy, seen.st_mode & MODE_KEPT)
                os.utime(copy, ns=(seen.st_atime_ns, seen.st_mtime_ns))
                self.copied.files += 1
                self.copied.content_bytes += seen.st_size
                self.copied.disk_bytes += os.fstat(copy).st_blocks * BLOCK_BYTES
                self.on_entry(Found(found.path, Kind.FILE, seen), copy, content)
            finally:
                os.close(copy)
        finally:
            os.close(original)

    def _copy_content(self, original: int, copy: int, size: int) -> bytes | None:
        """Copy a content; return it if it is small, since it was read anyway."""
        if size <= SMALL_BYTES:
            content = os.pread(original, SMALL_BYTES + 1, 0)
            if len(content) <= SMALL_BYTES:
                written = 0
                while written < len(content):
                    written += os.pwrite(copy, content[written:], written)
                return content
        self.copied.shared_files += copy_content(original, copy)
        return None


def copy_content(original: int, copy: int) -> bool:
    """Copy a file's content and keep its holes; return whether the blocks are shared.

    Raises:
        OSError: It cannot be read, or the disk is full.
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
