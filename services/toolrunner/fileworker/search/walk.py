"""Walk of directories without following links, with bounded memory and with pauses."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root, kind_of
from toolrunner.fileworker.content.snapshot import info_of
from toolrunner.fileworker.jobs import PAUSE, Pause
from toolrunner.fileworker.search.gitignore import Ignores, ignores_at
from toolrunner.fileworker.values import PathInfo

ENTRIES_MAX: Final = 1_000_000
#: Pending directories.
DIRECTORIES_MAX: Final = 50_000
#: Names between two pauses; so many are in memory at a time.
NAMES_PER_TURN: Final = 2000
SLACK: Final = 1000


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """Whether hidden and ignored entries are included."""

    hidden: bool
    ignored: bool


class Name(NamedTuple):
    """A name in a directory; directories sort first.

    Attributes:
        is_leaf: Whether it is not a directory.
        name: The name.
    """

    is_leaf: bool
    name: str


@dataclass(frozen=True, slots=True)
class Scan:
    """The names of one directory.

    Attributes:
        fd: The directory, open as long as this is used.
        path: Its path relative to the root.
        ignores: The ignore rules in it.
        wanted: Which hidden and ignored entries are included.
    """

    fd: int
    path: str
    ignores: Ignores
    wanted: WalkOptions

    def chunks(self) -> Iterator[tuple[list[Name], int]]:
        """Yield included names, and the number of excluded ones, in chunks."""
        with os.scandir(self.fd) as entries:
            while chunk := list(islice(entries, NAMES_PER_TURN)):
                names = [
                    Name(not entry.is_dir(follow_symlinks=False), entry.name) for entry in chunk
                ]
                shown = [name for name in names if self._is_shown(name)]
                yield shown, len(names) - len(shown)

    def info(self, name: Name) -> PathInfo | None:
        """Return the metadata of an entry; None if it was removed."""
        try:
            result = os.stat(name.name, dir_fd=self.fd, follow_symlinks=False)
            is_link = kind_of(result.st_mode) == "symlink"
            target = os.readlink(name.name, dir_fd=self.fd) if is_link else ""
        except OSError:
            return None
        return info_of(joined(self.path, name.name), result, target)

    def _is_shown(self, name: Name) -> bool:
        if not self.wanted.hidden and name.name.startswith("."):
            return False
        path = joined(self.path, name.name)
        return self.wanted.ignored or not self.ignores.ignores(path, is_directory=not name.is_leaf)


def joined(directory: str, name: str) -> str:
    """Return the path of a name in a directory."""
    return f"{directory}/{name}" if directory else name


@dataclass
class Walk:
    """A walk of everything below a directory.

    Attributes:
        fits: Returns by its path whether the metadata of a file is needed.
        until_s: The deadline, by the monotonic clock.
        is_truncated: Whether a limit was reached.
    """

    root: Root
    wanted: WalkOptions
    fits: Callable[[str], bool] = lambda path: True
    until_s: float = float("inf")
    is_truncated: bool = False
    _seen: int = 0

    def files(self, directory: str) -> Iterator[PathInfo | Pause]:
        """Yield everything but directories, with pauses in between.

        Raises:
            FileRefused: The directory itself cannot be read.
        """
        todo = [(directory, ignores_at(self.root, directory))]
        while todo and not self.is_truncated:
            current, ignores = todo.pop()
            try:
                fd = self.root.open(current, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError as error:
                if current == directory:
                    raise errors.refusal_of(error, directory) from error
                continue
            try:
                yield from self._look(Scan(fd, current, ignores, self.wanted), todo)
            finally:
                os.close(fd)

    def _look(self, scan: Scan, todo: list[tuple[str, Ignores]]) -> Iterator[PathInfo | Pause]:
        below: list[str] = []
        for names, unseen in scan.chunks():
            self._seen += len(names) + unseen
            for name in sorted(names):
                path = joined(scan.path, name.name)
                if not name.is_leaf:
                    below.append(path)
                elif self.fits(path) and (info := scan.info(name)) is not None:
                    yield info
            is_much = self._seen > ENTRIES_MAX or len(todo) + len(below) > DIRECTORIES_MAX
            if is_much or time.monotonic() > self.until_s:
                self.is_truncated = True
                return
            yield PAUSE
        todo += [(path, scan.ignores.below(self.root, path)) for path in below]


def directory_at(root: Root, asked: str) -> str:
    """Return the path of a directory without links.

    Raises:
        FileRefused: There is none, or it is not a directory.
    """
    path = root.relative(asked)
    try:
        with root.opened(path, os.O_PATH) as fd:
            kind = kind_of(os.fstat(fd).st_mode)
            if kind != "directory":
                raise errors.wrong_kind(asked, kind, "read it, or name a directory")
            return root.path_of(fd, path)
    except OSError as error:
        raise errors.refusal_of(error, asked) from error


class Ordered(Protocol):
    """A type with an order."""

    def __lt__(self, other: Any, /) -> bool:
        """Return whether it is less than the other."""
        ...


K = TypeVar("K", bound=Ordered)


class TopN(Generic[K]):
    """Keeps the least `count` of all items."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: list[K] = []
        self._last: K | None = None  # Items after it are dropped.

    def add(self, items: Iterable[K]) -> None:
        """Add some items."""
        last = self._last
        self._kept += [item for item in items if last is None or item < last]
        if len(self._kept) > self._count + SLACK:
            self._last = self.all()[-1]

    def all(self) -> list[K]:
        """Return the kept items, in order."""
        self._kept.sort()
        del self._kept[self._count :]
        return self._kept
