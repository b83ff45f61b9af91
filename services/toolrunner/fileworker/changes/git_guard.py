"""Protection of git's own directories, whose files could make git execute programs.

Theory: names are not sufficient. A `.git` may be a link or a file that points elsewhere, a
`commondir` points further, and a directory of any name is a git directory once it has the files
that git looks for. So each path to be changed is checked at its real location, by open descriptors:
each directory from there up to the root is compared with those that git would use, and checked for
the files of a git directory. That is done when a change is planned, to report it at once, and again
on the descriptor that it is made with.
"""

import os
import posixpath
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import PATH_BYTES_MAX, Entry, Root
from toolrunner.fileworker.search.gitignore import GIT_DIRECTORY

#: The entries of a git directory; the last two may be elsewhere, in its commondir.
MARKS: Final = ("HEAD", "refs", "objects")
COMMON_DIRECTORY: Final = "commondir"
POINTER_BYTES_MAX: Final = PATH_BYTES_MAX + len("gitdir: ")
WHY: Final = "git's own files are protected here; use git itself"

Inode = tuple[int, int]


@dataclass
class _Used:
    """The directories that git would use, by inode and by path.

    A path counts also while it does not exist: a directory could be moved there.
    """

    root: Root
    inodes: set[Inode] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)

    def look(self, directory: str) -> None:
        """Add the directories that git would use if it were started in a directory."""
        path = _beside(directory, GIT_DIRECTORY)
        with suppress(OSError), self.root.opened(path, os.O_PATH | os.O_NOFOLLOW) as found:
            mode = os.fstat(found).st_mode
            if stat.S_ISLNK(mode):
                self._add(_beside(directory, os.readlink("", dir_fd=found)))
            if not stat.S_ISREG(mode):
                self._add(path)
        with suppress(OSError), self.root.opened(path, os.O_PATH) as found:
            if output := _pointer_text(found).removeprefix("gitdir:").strip():
                self._add(_beside(directory, output, self.root.prefix))

    def _add(self, path: str) -> None:
        self.paths.add(path)
        with suppress(OSError), self.root.opened(path, os.O_PATH | os.O_DIRECTORY) as fd:
            self.inodes.add(_inode(fd))
            real = self.root.path_of(fd, path)
            with (
                suppress(OSError),
                self.root.opened(f"{real}/{COMMON_DIRECTORY}", os.O_PATH) as pointer,
            ):
                shared = _beside(real, _pointer_text(pointer), self.root.prefix)
                self.paths.add(shared)
                self.inodes.add(_inode_at(self.root, shared))

    def has(self, path: str) -> bool:
        """Return whether a path is inside of one of them, or contains one."""
        return any(
            path == used or path.startswith(f"{used}/") or used.startswith(f"{path}/")
            for used in self.paths
        )


@dataclass(frozen=True, slots=True)
class GitGuard:
    """Refuses changes of git's own files, if it is on.

    Attributes:
        root: The root of the files.
        is_on: Whether anything is refused.
    """

    root: Root
    is_on: bool

    def check(self, entry: Entry, asked: str) -> None:
        """Check that an entry may be created, replaced, moved or deleted.

        Raises:
            FileRefused: It is git's, or would make the directory a git directory.
        """
        if self.is_on and (
            _is_git(entry.name)
            or _would_be_git(entry.directory_fd, entry.name)
            or self._is_inside(entry.directory_fd, entry.name)
        ):
            raise errors.forbidden(asked, WHY)
        # Git's directory itself may have another name.
        with suppress(OSError), entry.found() as found:
            if self.is_on and stat.S_ISDIR(os.fstat(found).st_mode) and self._is_inside(found):
                raise errors.forbidden(asked, WHY)

    def check_path(self, path: str, asked: str) -> None:
        """Check that a path may be created, whose parent directories may be missing.

        Raises:
            FileRefused: It is git's, or one of its parents would be.
        """
        if not self.is_on:
            return
        parts = [part for part in path.split("/") if part]
        if any(map(_is_git, parts)):
            raise errors.forbidden(asked, WHY)
        for depth in range(len(parts) - 1, -1, -1):
            try:
                fd = self.root.open("/".join(parts[:depth]), os.O_RDONLY | os.O_DIRECTORY)
            except OSError:
                continue
            try:
                self.check(Entry(fd, parts[depth], "/".join(parts[: depth + 1])), asked)
            finally:
                os.close(fd)
            return

    def _is_inside(self, directory_fd: int, name: str = "") -> bool:
        """Return whether a directory is in a git directory, or a name in it leads into one."""
        path = self.root.path_of(directory_fd, "")
        if any(map(_is_git, path.split("/"))):
            return True
        used, above = _Used(self.root), set[Inode]()
        for fd in self._upwards(directory_fd):
            if _looks_like_git(fd):
                return True
            above.add(_inode(fd))
            used.look(self.root.path_of(fd, ""))
        if _inode(self.root.fd) not in above:
            # It is no longer in the workspace.
            return True
        return bool(above & used.inodes) or bool(name and used.has(_beside(path, name)))

    def _upwards(self, directory_fd: int) -> Iterator[int]:
        """Yield a directory and its ancestors up to the root; each is open until the next."""
        top = _inode(self.root.fd)
        fd = os.dup(directory_fd)
        try:
            for _ in range(PATH_BYTES_MAX):
                yield fd
                if _inode(fd) == top:
                    return
                above = os.open("..", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
                os.close(fd)
                fd = above
        finally:
            os.close(fd)


def _is_git(name: str) -> bool:
    # Some file systems treat all of these as the same name.
    return name.casefold().rstrip(". ") == GIT_DIRECTORY


def _inode(fd: int) -> Inode:
    result = os.fstat(fd)
    return result.st_dev, result.st_ino


def _inode_at(root: Root, path: str) -> Inode:
    with root.opened(path, os.O_PATH | os.O_DIRECTORY) as fd:
        return _inode(fd)


def _has(fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _looks_like_git(fd: int, extra: str = "") -> bool:
    def has(name: str) -> bool:
        return name == extra or _has(fd, name)

    return has("HEAD") and (has(COMMON_DIRECTORY) or (has("refs") and has("objects")))


def _would_be_git(fd: int, name: str) -> bool:
    return name in (*MARKS, COMMON_DIRECTORY) and _looks_like_git(fd, name)


def _pointer_text(found: int) -> str:
    """Return the content of a small pointer file; empty if it is not a regular file."""
    if not stat.S_ISREG(os.fstat(found).st_mode):
        return ""
    fd = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.fsdecode(os.read(fd, POINTER_BYTES_MAX)).strip()
    finally:
        os.close(fd)


def _beside(directory: str, target: str, prefix: str = "") -> str:
    """Return the target of a path in a directory, relative to the root."""
    if target.startswith("/"):
        inside = prefix and target.startswith(f"{prefix}/")
        return posixpath.normpath(target[len(prefix) + 1 :]) if inside else ".."
    return posixpath.normpath(f"{directory}/{target}" if directory else target)
