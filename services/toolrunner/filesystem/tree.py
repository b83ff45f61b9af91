"""Walks and renames in trees that untrusted programs modify concurrently."""

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolrunner.filesystem.beneath import Root

BLOCK_BYTES: Final = 512
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
RENAME_NOREPLACE: Final = 1
RENAME_EXCHANGE: Final = 2
#: The errors of file systems that do not support it.
_UNKNOWN: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
#: The errors of a path that leads to no entry; EXDEV if it leads out of the root.
_ABSENT: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.ENAMETOOLONG}
)
_libc: Final = ctypes.CDLL(None, use_errno=True)


class Kind(StrEnum):
    """The type of an entry."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    SPECIAL = "special"


@dataclass(frozen=True, slots=True)
class Found:
    """An entry at a path, without following links."""

    path: str  # Relative to the root.
    kind: Kind
    seen: os.stat_result

    @property
    def is_executable(self) -> bool:
        """Whether it is a file that its owner may execute."""
        return self.kind is Kind.FILE and bool(self.seen.st_mode & stat.S_IXUSR)

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """Changes whenever the content does, because the ctime cannot be set by programs."""
        seen = self.seen
        return (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def walk(
    root: Root, *, without: frozenset[str] = frozenset(), is_whole: bool = False
) -> Iterator[Found]:
    """Yield everything below a root, directories before their entries.

    Entries that vanish are omitted, and the entries of directories that may not be read.

    Args:
        root: The root.
        without: Names that are skipped, with everything below them.
        is_whole: Whether a directory that may not be read is an error, because what is omitted
            would be taken for removed.

    Raises:
        OSError: Something cannot be read.
    """
    pending = [""]
    while pending:
        above = pending.pop()
        try:
            fd = root.open(above, _DIRECTORY)
        except OSError as error:
            if error.errno not in _ABSENT and (is_whole or error.errno != errno.EACCES):
                raise
            continue
        try:
            names = sorted(os.listdir(fd), reverse=True)
            found = []
            for name in names:
                if name in without:
                    continue
                with suppress(FileNotFoundError):
                    seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    path = f"{above}/{name}" if above else name
                    found.append(Found(path, kind_of(seen.st_mode), seen))
        finally:
            os.close(fd)
        yield from reversed(found)
        pending.extend(each.path for each in found if each.kind is Kind.DIRECTORY)


def look(root: Root, path: str) -> Found | None:
    """Return the entry at a path, without following links; None if there is none.

    Raises:
        OSError: The kernel does not say whether there is one, such as for lack of descriptors.
    """
    above, _, name = path.rpartition("/")
    try:
        with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
            seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise
    return Found(path, kind_of(seen.st_mode), seen)


def look_if_allowed(root: Root, path: str) -> Found | None:
    """Return the entry at a path; None also if this process may not see it.

    Raises:
        OSError: The kernel does not say whether there is one.
    """
    try:
        return look(root, path)
    except PermissionError:
        return None


def create(root: Root, path: str) -> int:
    """Create a file that must not exist, and return it open for reading and writing.

    Raises:
        OSError: The kernel refuses.
    """
    above, _, name = path.rpartition("/")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
        return os.open(name, flags, 0o600, dir_fd=fd)


def hand_over(root: Root, owner: int) -> None:
    """Change the owner of a tree to a user, and the group to the same number.

    Raises:
        OSError: This process is not root.
    """
    for found in walk(root):
        above, _, name = found.path.rpartition("/")
        with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
            os.chown(name, owner, owner, dir_fd=fd, follow_symlinks=False)
    os.chown(f"/proc/self/fd/{root.fd}", owner, owner)


def kind_of(mode: int) -> Kind:
    """Return the type of a mode."""
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.DIRECTORY
    return Kind.LINK if stat.S_ISLNK(mode) else Kind.SPECIAL


def measure(root: Root, *, entries_max: int) -> tuple[int, int]:
    """Return the bytes on disk and the number of entries below a root.

    Args:
        root: The root.
        entries_max: Entries after which to stop; the result is then a lower bound.
    """
    disk_bytes = entries = 0
    counted: set[tuple[int, int]] = set()
    for found in walk(root):
        entries += 1
        name = (found.seen.st_dev, found.seen.st_ino)
        if found.kind is not Kind.FILE or found.seen.st_nlink == 1 or name not in counted:
            disk_bytes += found.seen.st_blocks * BLOCK_BYTES
        if found.kind is Kind.FILE and found.seen.st_nlink > 1:
            counted.add(name)
        if entries >= entries_max:
            break
    return disk_bytes, entries


def rename_to_free(old_fd: int, old: str, new_fd: int, new: str) -> None:
    """Rename an entry to a name that does not exist.

    Raises:
        OSError: The name exists, or the kernel refuses.
    """
    _rename(old_fd, old, new_fd, new, RENAME_NOREPLACE)


def exchanged(old_fd: int, old: str, new_fd: int, new: str) -> bool:
    """Exchange the names of two entries; return False if the file system does not support it.

    Raises:
        OSError: One of them is missing, or the kernel refuses.
    """
    try:
        _rename(old_fd, old, new_fd, new, RENAME_EXCHANGE)
    except OSError as error:
        if error.errno in _UNKNOWN:
            return False
        raise
    return True


def _rename(old_fd: int, old: str, new_fd: int, new: str, flags: int) -> None:
    if _libc.renameat2(old_fd, os.fsencode(old), new_fd, os.fsencode(new), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), new)
