"""Access to paths beneath one directory; the kernel refuses paths that lead out of it.

Theory: every path is resolved by openat2 from the descriptor of the root, in one step, so a link
that is swapped in meanwhile cannot lead out. A file to write is identified by the descriptor of its
real directory and a last name that is no link; renaming over that name can at worst replace a link.
"""

import ctypes
import errno
import os
import posixpath
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from toolrunner.filesystem import errors

SYS_OPENAT2: Final = 437
RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08
#: The kernel returns EAGAIN if a rename happened while it resolved `..`.
TRIES_MAX: Final = 128
LINKS_MAX: Final = 40
PATH_BYTES_MAX: Final = 4096
DIRECTORY_MODE: Final = 0o755

_libc: Final = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """The location of a file: an open directory and a name in it that is no link.

    Attributes:
        directory_fd: The directory, open as long as this object is used.
        name: The name in it.
        path: The path relative to the root, whose last name is no link.
    """

    directory_fd: int
    name: str
    path: str

    def lstat(self) -> os.stat_result | None:
        """Return the lstat of the entry, or None."""
        try:
            return os.stat(self.name, dir_fd=self.directory_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    @contextmanager
    def found(self) -> Iterator[int]:
        """Open the entry with O_PATH, whatever its type.

        Raises:
            OSError: There is none.
        """
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self.name, flags, dir_fd=self.directory_fd)
        try:
            yield fd
        finally:
            os.close(fd)


class Root:
    """One directory, and all files beneath it.

    Attributes:
        fd: The descriptor of the directory.
        prefix: Its path in the view of commands; absolute paths begin with it.
    """

    def __init__(self, fd: int, prefix: str) -> None:
        self.fd = fd
        self.prefix = prefix.rstrip("/")

    @classmethod
    def open_directory(cls, directory: str) -> "Root":
        """Open a root by its path; all later accesses use the descriptor."""
        return cls(os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), directory)

    def close(self) -> None:
        """Close the directory."""
        os.close(self.fd)

    def relative(self, path: str) -> str:
        """Return a path relative to the root, given relative or absolute inside of it.

        Raises:
            FileRefused: It is not a valid path, or absolute outside.
        """
        if "\0" in path or len(path.encode(errors="surrogateescape")) > PATH_BYTES_MAX:
            text = f"a path has at most {PATH_BYTES_MAX} bytes, none of them NUL"
            raise errors.FileRefused(errors.Reason.INVALID_REQUEST, text, field="path")
        if path.startswith("/"):
            if path.rstrip("/") != self.prefix and not path.startswith(f"{self.prefix}/"):
                raise errors.outside(path)
            path = path[len(self.prefix) :]
        parts = [part for part in path.split("/") if part not in ("", ".")]
        return "/".join(parts)

    def open(self, path: str, flags: int, *, through_links: bool = True) -> int:
        """Open a path relative to the root.

        Raises:
            OSError: The kernel refuses; EXDEV if the path leads out.
        """
        resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
        if not through_links:
            resolve |= RESOLVE_NO_SYMLINKS
        how = struct.pack("QQQ", flags | os.O_CLOEXEC, 0, resolve)
        target = os.fsencode(path or ".")
        for _ in range(TRIES_MAX):
            opened: int = _libc.syscall(SYS_OPENAT2, self.fd, target, how, len(how))
            if opened >= 0:
                return opened
            number = ctypes.get_errno()
            if number not in (errno.EAGAIN, errno.EINTR):
                raise OSError(number, os.strerror(number), path)
        raise OSError(errno.EXDEV, "it is renamed all the time", path)

    @contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        """Open a path in a context."""
        fd = self.open(path, flags)
        try:
            yield fd
        finally:
            os.close(fd)

    def stat(self, path: str) -> os.stat_result:
        """Return the stat of a path, following links."""
        with self.opened(path, os.O_PATH) as fd:
            return os.fstat(fd)

    @contextmanager
    def entry(self, path: str) -> Iterator[Entry]:
        """Open the location of a file in a context, with all links resolved.

        Raises:
            FileRefused: It is outside, or a parent directory is missing or not a directory.
        """
        current = path
        for _ in range(LINKS_MAX):
            above, _, name = current.rpartition("/")
            if name in ("", "..", "."):
                raise errors.wrong_kind(path, "directory", "name a file in it")
            try:
                directory_fd = self.open(above, os.O_RDONLY | os.O_DIRECTORY)
            except OSError as error:
                raise errors.refusal_of(error, path) from error
            try:
                target = _link_target(directory_fd, name)
                if target is None:
                    yield Entry(directory_fd, name, current)
                    return
            finally:
                os.close(directory_fd)
            if target.startswith("/"):
                raise errors.outside(path)
            current = "/".join(
                part for part in (*above.split("/"), *target.split("/")) if part not in ("", ".")
            )
        raise errors.outside(path)

    @contextmanager
    def real_entry(self, path: str) -> Iterator[Entry]:
        """Open the location of a path without links in a context.

        Raises:
            OSError: A parent directory is missing, is a link or not a directory.
        """
        above, _, name = path.rpartition("/")
        fd = self.open(above, os.O_RDONLY | os.O_DIRECTORY, through_links=False)
        try:
            yield Entry(fd, name, path)
        finally:
            os.close(fd)

    def real_path(self, entry: Entry) -> str:
        """Return the path of a location without links."""
        above = self.path_of(entry.directory_fd, entry.path.rpartition("/")[0])
        return f"{above}/{entry.name}" if above else entry.name

    def future(self, path: str) -> str:
        """Return the path without links of a file whose parent directories are to be created.

        Raises:
            FileRefused: It leads out.
        """
        parts = path.split("/")
        for depth in range(len(parts) - 1, -1, -1):
            try:
                above = self.real("/".join(parts[:depth]))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise errors.refusal_of(error, path) from error
            made = posixpath.normpath("/".join((above or ".", *parts[depth:])))
            if made.startswith(".."):
                raise errors.outside(path)
            return made
        raise errors.outside(path)

    def make_directories(self, path: str) -> list[str]:
        """Create a directory and its parents; return the new ones, outermost first.

        Raises:
            OSError: The kernel refuses.
        """
        made: list[str] = []
        done: list[str] = []
        for part in [part for part in path.split("/") if part]:
            above = "/".join(done)
            done.append(part)
            if part != "..":
                with self.opened(above, os.O_RDONLY | os.O_DIRECTORY) as fd:
                    try:
                        os.mkdir(part, DIRECTORY_MODE, dir_fd=fd)
                        made.append("/".join(done))
                    except FileExistsError:
                        pass
        # The last may have existed without being a directory.
        os.close(self.open(path, os.O_PATH | os.O_DIRECTORY))
        return made

    def real(self, path: str) -> str:
        """Return a path without links, relative to the root.

        Raises:
            OSError: It does not exist, or is outside.
        """
        with self.opened(path, os.O_PATH) as fd:
            return self.path_of(fd, path)

    def path_of(self, fd: int, otherwise: str) -> str:
        """Return the path of an open descriptor relative to the root."""
        try:
            root = os.readlink(f"/proc/self/fd/{self.fd}")
            found = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            return otherwise
        if found == root:
            return ""
        return found[len(root) + 1 :] if found.startswith(f"{root}/") else otherwise


def is_absent(directory: str, path: str) -> bool:
    """Return whether there is certainly nothing at a path beneath a directory.

    For callers outside of a file worker: nothing is opened for reading, and a path that leads out
    is not absent.
    """
    try:
        root = Root.open_directory(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        root.stat(root.relative(path))
    except FileNotFoundError:
        return True
    except (OSError, errors.FileRefused):
        return False
    else:
        return False
    finally:
        root.close()


def _link_target(directory_fd: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory_fd)
    except OSError:
        return None


def kind_of(mode: int) -> str:
    """Return the type of a file: `file`, `directory`, `symlink` or `special`."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "special"
