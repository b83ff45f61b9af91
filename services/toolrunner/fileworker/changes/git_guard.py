"""Git's own directories: what is in one could make git run something, so it may be protected.

Theory: names do not tell. A `.git` may be a link or a file that leads elsewhere, a `commondir`
leads further, and a directory of any name is git's once it has what git looks for. So whatever is
to be changed is looked at where it really is, by open descriptors: each directory from there up to
the root is compared with those that git would use, and with what git takes for its own. That is
done when a change is planned, to tell at once, and again on the descriptor that it is made with.
"""

import os
import posixpath
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import PATH_BYTES_MAX, Place, Root

GIT: Final = ".git"
#: What a directory has that git takes for its own; the last two may be elsewhere, as it says.
MARKS: Final = ("HEAD", "refs", "objects")
COMMON: Final = "commondir"
POINTER_BYTES_MAX: Final = PATH_BYTES_MAX + len("gitdir: ")
WHY: Final = "git's own files are protected here; use git itself"

Inode = tuple[int, int]


@dataclass
class _Used:
    """The directories that git would use, as they are and as they are named.

    A name counts also while nothing is there: something could be moved there.
    """

    root: Root
    inodes: set[Inode] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)

    def look(self, directory: str) -> None:
        """Take what git would use if it were started in a directory."""
        path = _beside(directory, GIT)
        with suppress(OSError), self.root.opened(path, os.O_PATH | os.O_NOFOLLOW) as found:
            mode = os.fstat(found).st_mode
            if stat.S_ISLNK(mode):
                self._add(_beside(directory, os.readlink("", dir_fd=found)))
            if not stat.S_ISREG(mode):
                self._add(path)
        with suppress(OSError), self.root.opened(path, os.O_PATH) as found:
            if said := _said(found).removeprefix("gitdir:").strip():
                self._add(_beside(directory, said, self.root.prefix))

    def _add(self, path: str) -> None:
        self.paths.add(path)
        with suppress(OSError), self.root.opened(path, os.O_PATH | os.O_DIRECTORY) as fd:
            self.inodes.add(_inode(fd))
            real = self.root.path_of(fd, path)
            with suppress(OSError), self.root.opened(f"{real}/{COMMON}", os.O_PATH) as pointer:
                shared = _beside(real, _said(pointer), self.root.prefix)
                self.paths.add(shared)
                self.inodes.add(_inode_at(self.root, shared))

    def has(self, path: str) -> bool:
        """Tell whether a path is in one of them, or has one in it."""
        return any(
            path == used or path.startswith(f"{used}/") or used.startswith(f"{path}/")
            for used in self.paths
        )


@dataclass(frozen=True, slots=True)
class GitGuard:
    """Refuses changes of git's own files, if it is on.

    Attributes:
        root: Where the files are.
        is_on: Whether anything is refused.
    """

    root: Root
    is_on: bool

    def check(self, place: Place, asked: str) -> None:
        """Let a name in a directory be made, replaced, moved or deleted.

        Raises:
            FileRefused: It is git's, or would make the directory git's.
        """
        if self.is_on and (
            _is_git(place.name)
            or _would_be_git(place.directory_fd, place.name)
            or self._is_inside(place.directory_fd, place.name)
        ):
            raise errors.forbidden(asked, WHY)
        # Git's directory itself may have another name.
        with suppress(OSError), place.found() as found:
            if self.is_on and stat.S_ISDIR(os.fstat(found).st_mode) and self._is_inside(found):
                raise errors.forbidden(asked, WHY)

    def check_path(self, path: str, asked: str) -> None:
        """Let something be made, of which directories above may be missing.

        Raises:
            FileRefused: It is git's, or one of those would be.
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
                self.check(Place(fd, parts[depth], "/".join(parts[: depth + 1])), asked)
            finally:
                os.close(fd)
            return

    def _is_inside(self, directory_fd: int, name: str = "") -> bool:
        """Tell whether a directory is git's or in one that is, or a name in it leads into one."""
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
            # It is nowhere in the workspace any more.
            return True
        return bool(above & used.inodes) or bool(name and used.has(_beside(path, name)))

    def _upwards(self, directory_fd: int) -> Iterator[int]:
        """Yield a directory and all above it, the root last; each is open while it is looked at."""
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
    # There are file systems to which all of these are the same.
    return name.casefold().rstrip(". ") == GIT


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

    return has("HEAD") and (has(COMMON) or (has("refs") and has("objects")))


def _would_be_git(fd: int, name: str) -> bool:
    return name in (*MARKS, COMMON) and _looks_like_git(fd, name)


def _said(found: int) -> str:
    """Return what a small file says that leads elsewhere; nothing if it is none."""
    if not stat.S_ISREG(os.fstat(found).st_mode):
        return ""
    fd = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.fsdecode(os.read(fd, POINTER_BYTES_MAX)).strip()
    finally:
        os.close(fd)


def _beside(directory: str, target: str, prefix: str = "") -> str:
    """Return where a path leads that is said in a directory, relative to the root."""
    if target.startswith("/"):
        inside = prefix and target.startswith(f"{prefix}/")
        return posixpath.normpath(target[len(prefix) + 1 :]) if inside else ".."
    return posixpath.normpath(f"{directory}/{target}" if directory else target)
