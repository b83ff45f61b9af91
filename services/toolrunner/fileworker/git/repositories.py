"""Location of repositories beneath the root, and a quick check that there is none."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.changes.git_guard import COMMON_DIRECTORY, POINTER_BYTES_MAX
from toolrunner.fileworker.git.protocol import REPOSITORIES_MAX
from toolrunner.fileworker.jobs import PAUSE, Pause
from toolrunner.fileworker.search.gitignore import GIT_DIRECTORY, Ignores, ignores_at
from toolrunner.fileworker.search.walk import directory_at, joined

DEPTH_MAX: Final = 4
DIRECTORIES_MAX: Final = 5000
#: Per directory; further entries are ignored.
NAMES_MAX: Final = 20_000
#: Directories between two pauses.
DIRECTORIES_PER_TURN: Final = 50
#: Large directories of generated files, which are not always ignored.
SKIPPED: Final = frozenset({GIT_DIRECTORY, "node_modules", "__pycache__", ".venv"})

_UNDER_WAY: Final = (
    ("MERGE_HEAD", "a merge is under way"),
    ("rebase-merge", "a rebase is under way"),
    ("rebase-apply", "a rebase or an application of patches is under way"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is under way"),
    ("REVERT_HEAD", "a revert is under way"),
    ("BISECT_LOG", "a bisection is under way"),
)
#: A larger tree is left to the file worker, which does not block other requests.
CHECKED_NAMES_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class RepositoryPaths:
    """The directories of a repository.

    Attributes:
        directory: Relative to the workspace; empty for the root.
        files: The work tree.
        git: The git directory of this work tree.
        common: The common directory of all work trees.
    """

    directory: str
    files: Path
    git: Path
    common: Path

    @property
    def root(self) -> Path:
        """The directory of the workspace."""
        depth = len(Path(self.directory).parts)
        return self.files.parents[depth - 1] if depth else self.files

    def under_way(self) -> str:
        """Return the operation in progress; empty for none."""
        found = (text for name, text in _UNDER_WAY if os.path.lexists(self.git / name))
        return next(found, "")


def not_a_repository(path: str) -> errors.FileRefused:
    """Return the error for a path without a repository."""
    text = f"{path or 'the root'!r} is in no git repository; name a directory of one, or make one"
    return errors.FileRefused(errors.Reason.NOT_A_REPOSITORY, text, path=path)


def repository_of(root: Root, asked: str) -> RepositoryPaths:
    """Return the repository that a directory is in.

    Raises:
        FileRefused: There is no such directory, or it is in none.
    """
    directory = directory_at(root, asked)
    while True:
        if (repository_paths := repository_paths_at(root, directory)) is not None:
            return repository_paths
        if not directory:
            raise not_a_repository(asked)
        directory = directory.rpartition("/")[0]


def repository_paths_at(root: Root, directory: str) -> RepositoryPaths | None:
    """Return the repository whose work tree is a directory; None if there is none."""
    base = Path(os.readlink(f"/proc/self/fd/{root.fd}"))
    files = base / directory
    try:
        git = _git_directory(root, joined(directory, GIT_DIRECTORY), files)
        inside = None if git is None else _beneath(base, git)
        if inside is None or not (inside / "HEAD").exists():
            return None
        common = _beneath(base, _common(inside))
    except (OSError, ValueError):
        return None
    return None if common is None else RepositoryPaths(directory, files, inside, common)


def find_repositories(root: Root) -> Iterator[RepositoryPaths | Pause]:
    """Yield repositories, the outermost first, with pauses in between."""
    todo: list[tuple[str, int, Ignores]] = [("", 0, ignores_at(root, ""))]
    visited = found = 0
    while todo and visited < DIRECTORIES_MAX and found < REPOSITORIES_MAX:
        directory, depth, ignores = todo.pop(0)
        visited += 1
        if (repository_paths := repository_paths_at(root, directory)) is not None:
            found += 1
            yield repository_paths
        if depth < DEPTH_MAX:
            for below in directories_in(root, directory, ignores):
                todo.append((below, depth + 1, ignores.below(root, below)))
        if visited % DIRECTORIES_PER_TURN == 0:
            yield PAUSE


def directories_in(root: Root, directory: str, ignores: Ignores) -> list[str]:
    """Return the subdirectories of a directory to search, by name."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        with root.opened(directory, flags) as fd, os.scandir(fd) as entries:
            names = [
                entry.name
                for entry in islice(entries, NAMES_MAX)
                if entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED
            ]
    except OSError:
        return []
    paths = [joined(directory, name) for name in sorted(names)]
    return [path for path in paths if not ignores.ignores(path, is_directory=True)]


def _git_directory(root: Root, path: str, files: Path) -> Path | None:
    try:
        fd = root.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if Path(f"/proc/self/fd/{fd}").is_dir():
            return Path(os.readlink(f"/proc/self/fd/{fd}"))
        text = os.fsdecode(os.read(fd, POINTER_BYTES_MAX)).rstrip("\n")
    finally:
        os.close(fd)
    mark, _, target = text.partition(": ")
    return files / target if mark == "gitdir" and target else None


def _common(git: Path) -> Path:
    try:
        pointer = (git / COMMON_DIRECTORY).read_bytes()[:POINTER_BYTES_MAX]
    except FileNotFoundError:
        return git
    return git / os.fsdecode(pointer).rstrip("\n")


def _beneath(base: Path, path: Path) -> Path | None:
    """Return a path without links, if it is in the workspace."""
    real = path.resolve(strict=True)
    return real if real.is_relative_to(base.resolve()) else None


def holds_no_repository(directory: str) -> bool:
    """Return whether a tree has no repository; False if it may have one, or if it is large.

    For callers outside of a file worker: starting one takes a hundred times longer than reading a
    small tree, and most trees that are checked have no repository. No link is followed, and only
    names are read.
    """
    try:
        root = Root.open_directory(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        return _is_without(root)
    except OSError:
        return False
    finally:
        root.close()


def _is_without(root: Root) -> bool:
    left = CHECKED_NAMES_MAX
    todo = [("", 0)]
    while todo:
        path, depth = todo.pop()
        names, directories = _entries(root, path, left + 1)
        left -= len(names)
        if left < 0 or GIT_DIRECTORY in names:
            return False
        if depth < DEPTH_MAX:
            todo += [(f"{path}/{name}" if path else name, depth + 1) for name in directories]
    return True


def _entries(root: Root, path: str, most: int) -> tuple[set[str], list[str]]:
    """Return names in a directory, and those of them that are directories."""
    fd = root.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, through_links=False)
    try:
        with os.scandir(fd) as entries:
            found = list(islice(entries, most))
            directories = [each.name for each in found if each.is_dir(follow_symlinks=False)]
    finally:
        os.close(fd)
    return {each.name for each in found}, directories
