"""Removal of trees that untrusted programs created: no link is followed, any depth is handled.

Theory: a tree is first renamed into the trash, in one step, so that a crash leaves it either where
it was or in the trash, which is emptied at the next start. A directory that is not empty is moved
up into the trash before its own content is read; so two descriptors are enough for any depth, and
every name is used relative to an open directory.
"""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o700
BLOCK_BYTES: Final = 512
#: How often directories may be found filled again before that is an error.
REFILLS_MAX: Final = 1000
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class Trash:
    """The trash directory, on the file system of the trees that are moved to it."""

    directory: Path
    _numbers: "count[int]" = field(default_factory=count)

    def throw(self, path: Path) -> bool:
        """Move a tree to the trash, in one step; return whether there was one.

        Raises:
            FileNotFoundError: The directory that the trash is in was removed.
        """
        self.directory.mkdir(mode=PRIVATE, exist_ok=True)
        while True:
            target = self.directory / f"{path.name}.{next(self._numbers)}"
            try:
                os.rename(path, target)
            except FileNotFoundError:
                return False
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
                continue
            return True

    def empty(self) -> int:
        """Remove everything in the trash; return the bytes that were freed.

        Raises:
            OSError: An entry cannot be removed; the others are.
        """
        try:
            fd = os.open(self.directory, _DIRECTORY)
        except FileNotFoundError:
            return 0
        freed_bytes, refills = 0, 0
        problem: OSError | None = None
        try:
            # Each round moves everything one level up.
            while problem is None and (names := os.listdir(fd)):
                for name in names:
                    try:
                        freed_bytes += _remove(fd, name, self._numbers)
                    except FileNotFoundError:
                        continue
                    except OSError as error:
                        # A program that is about to end may still write into a directory.
                        refills += error.errno == errno.ENOTEMPTY
                        if error.errno != errno.ENOTEMPTY or refills > REFILLS_MAX:
                            problem = error
        finally:
            os.close(fd)
        if problem is not None:
            raise problem
        return freed_bytes


def _remove(top_fd: int, name: str, numbers: "count[int]") -> int:
    """Remove one entry of the trash, after moving its subdirectories up; return the bytes freed."""
    seen = os.stat(name, dir_fd=top_fd, follow_symlinks=False)
    if not stat.S_ISDIR(seen.st_mode):
        os.unlink(name, dir_fd=top_fd)
        return _freed(seen)
    _open_up(top_fd, name)
    fd = os.open(name, _DIRECTORY, dir_fd=top_fd)
    freed_bytes = 0
    try:
        for entry in os.listdir(fd):
            below = os.stat(entry, dir_fd=fd, follow_symlinks=False)
            if not stat.S_ISDIR(below.st_mode):
                os.unlink(entry, dir_fd=fd)
                freed_bytes += _freed(below)
            else:
                freed_bytes += _take_out(fd, entry, top_fd, numbers)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=top_fd)
    return freed_bytes + _freed(seen)


def _take_out(fd: int, entry: str, top_fd: int, numbers: "count[int]") -> int:
    """Remove a directory if it is empty, else move it up."""
    seen = os.stat(entry, dir_fd=fd, follow_symlinks=False)
    with suppress(OSError):
        os.rmdir(entry, dir_fd=fd)
        return _freed(seen)
    # Its `..` entry changes, so it must be writable itself.
    _open_up(fd, entry)
    while True:
        try:
            os.rename(entry, f"up.{next(numbers)}", src_dir_fd=fd, dst_dir_fd=top_fd)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            continue
        return 0


def _open_up(directory_fd: int, name: str) -> None:
    """Give the owner all permissions on a directory."""
    fd = os.open(
        name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory_fd
    )
    try:
        os.chmod(f"/proc/self/fd/{fd}", PRIVATE)
    finally:
        os.close(fd)


def _freed(seen: os.stat_result) -> int:
    is_last = stat.S_ISDIR(seen.st_mode) or seen.st_nlink == 1
    return seen.st_blocks * BLOCK_BYTES if is_last else 0
