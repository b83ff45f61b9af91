"""Looking into directories, one after another, never through a link."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from toolrunner.files import errors
from toolrunner.files.beneath import Root, kind_of
from toolrunner.files.ignores import Ignores, ignores_at
from toolrunner.files.jobs import PAUSE, Pause
from toolrunner.files.snapshots import info_of
from toolrunner.files.values import PathInfo

ENTRIES_MAX: Final = 1_000_000
#: Directories between two pauses.
DIRECTORIES_PER_TURN: Final = 50


@dataclass(frozen=True, slots=True)
class Scanned:
    """An entry of a directory."""

    info: PathInfo
    is_shown: bool  # Neither hidden nor ignored, or wanted all the same.

    @property
    def is_directory(self) -> bool:
        """Whether there may be more below it."""
        return self.info.type == "directory"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whether hidden and ignored entries are shown."""

    hidden: bool
    ignored: bool


def scan(root: Root, directory: str, ignores: Ignores, wanted: Wanted) -> list[Scanned]:
    """Return the entries of a directory, directories first, then by name.

    Raises:
        OSError: It cannot be read, or is none, or is a link.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    found = []
    with root.opened(directory, flags) as fd, os.scandir(fd) as entries:
        for entry in entries:
            path = f"{directory}/{entry.name}" if directory else entry.name
            try:
                result = entry.stat(follow_symlinks=False)
                target = os.readlink(entry.name, dir_fd=fd) if entry.is_symlink() else ""
            except FileNotFoundError:
                continue
            is_directory = kind_of(result.st_mode) == "directory"
            is_shown = (wanted.hidden or not entry.name.startswith(".")) and (
                wanted.ignored or not ignores.ignores(path, is_directory=is_directory)
            )
            found.append(Scanned(info_of(path, result, target), is_shown))
    return sorted(found, key=lambda each: (not each.is_directory, each.info.path))


@dataclass
class Walk:
    """Everything below a directory.

    Attributes:
        is_truncated: Whether there was more than may be looked at.
    """

    root: Root
    wanted: Wanted
    is_truncated: bool = False

    def files(self, directory: str) -> Iterator[PathInfo | Pause]:
        """Yield whatever is no directory, with pauses in between.

        Raises:
            FileRefused: The directory itself cannot be read.
        """
        todo = [(directory, ignores_at(self.root, directory))]
        seen = visited = 0
        while todo:
            current, ignores = todo.pop()
            try:
                entries = scan(self.root, current, ignores, self.wanted)
            except OSError as error:
                if current == directory:
                    raise errors.refusal_of(error, directory) from error
                continue
            for entry in entries:
                seen += 1
                if seen > ENTRIES_MAX:
                    self.is_truncated = True
                    return
                if entry.is_shown and entry.is_directory:
                    below = ignores.below(self.root, entry.info.path)
                    todo.append((entry.info.path, below))
                elif entry.is_shown:
                    yield entry.info
            visited += 1
            if visited % DIRECTORIES_PER_TURN == 0:
                yield PAUSE


def directory_at(root: Root, asked: str) -> str:
    """Return the path of a directory without links.

    Raises:
        FileRefused: There is none, or something else.
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
