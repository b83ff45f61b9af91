"""Restore of files from a checkpoint; the current state is stored as a checkpoint first."""

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.git.checkpoints import REFS, changes, find_checkpoint, keep
from toolrunner.fileworker.git.command import Git
from toolrunner.fileworker.git.diff import find_commits
from toolrunner.fileworker.git.diff_output import RawFile
from toolrunner.fileworker.git.protocol import (
    Checkpoint,
    RestoreCheckpoint,
    Restored,
    bounded_files,
)
from toolrunner.fileworker.git.repositories import RepositoryPaths, repository_of
from toolrunner.fileworker.jobs import Pause, Readable

SUBMODULE: Final = "160000"

Steps = Readable | Pause


def restore_checkpoint(
    git: Git, root: Root, request: RestoreCheckpoint
) -> Generator[Steps, None, Restored]:
    """Restore files, all of them or those below some paths.

    A repeated request after an interruption continues; the state before is then stored already.

    Raises:
        FileRefused: There is no such checkpoint, files have changed, or another entry blocks a
            path; nothing was changed.
    """
    until_s = time.monotonic() + request.timeout_s
    repository_paths = repository_of(root, request.directory)
    target = yield from find_checkpoint(git, repository_paths, request.ref, until_s)
    previous, present = yield from _kept(git, repository_paths, request, until_s)
    if request.if_unchanged_since_ref:
        yield from _check_unchanged(git, repository_paths, request, present.commit, until_s)
    reader = yield from changes(
        git, repository_paths, present.commit, target, until_s, "--no-renames"
    )
    wanted = [raw for raw in reader.raw if _is_wanted(raw, request)]
    plan = Plan(root, repository_paths, wanted)
    plan.check()
    plan.remove()
    yield from _write(git, repository_paths, target, plan.written, until_s)
    paths = {raw.path for raw in wanted}
    files = [file for file in reader.files() if file.path in paths]
    return Restored(bounded_files(files)[0], previous)


def _kept(
    git: Git, repository_paths: RepositoryPaths, request: RestoreCheckpoint, until_s: float
) -> Generator[Steps, None, tuple[Checkpoint, Checkpoint]]:
    """Return the state before the first attempt, and the one before this attempt."""
    ref = f"{REFS}/{request.scope}/{request.previous_label}"
    (before,) = yield from find_commits(git, repository_paths, [ref], until_s)
    if not before:
        made = yield from keep(
            git,
            repository_paths,
            request.scope,
            request.previous_label,
            until_s,
            spared=request.ref,
        )
        return made, made
    again = f"{request.previous_label}-again"
    present = yield from keep(
        git, repository_paths, request.scope, again, until_s, spared=request.ref
    )
    output = yield from git.output(
        repository_paths, ("show", "-s", "--format=%P %ct", before), until_s
    )
    *parents, created = output.decode().split()
    label = request.previous_label
    return Checkpoint(
        ref, repository_paths.directory, before, next(iter(parents), ""), label, int(created)
    ), present


def _check_unchanged(
    git: Git,
    repository_paths: RepositoryPaths,
    request: RestoreCheckpoint,
    present: str,
    until_s: float,
) -> Generator[Steps, None, None]:
    ref = request.if_unchanged_since_ref
    since = yield from find_checkpoint(git, repository_paths, ref, until_s)
    reader = yield from changes(git, repository_paths, since, present, until_s, "--no-renames")
    if reader.raw:
        path = reader.raw[0].path
        text = f"{path!r} has changed since {ref!r}; look at the difference, then restore without"
        raise errors.FileRefused(errors.Reason.FILE_CHANGED, text, path=path, etag="")


def _is_wanted(raw: RawFile, request: RestoreCheckpoint) -> bool:
    if SUBMODULE in (raw.old_mode, raw.new_mode):
        return False
    if raw.letter == "D" and not request.removes_later:
        return False
    below = [path.strip("/") for path in request.paths]
    return not below or any(raw.path == path or raw.path.startswith(f"{path}/") for path in below)


@dataclass
class Plan:
    """The files to remove and to write.

    Attributes:
        written: Paths that get the content of the checkpoint.
    """

    root: Root
    repository_paths: RepositoryPaths
    wanted: list[RawFile]
    written: list[str] = field(init=False)
    _removed: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.written = [raw.path for raw in self.wanted if raw.letter != "D"]
        self._removed = {raw.path for raw in self.wanted if raw.letter == "D"}

    def check(self) -> None:
        """Check that no other entry blocks a path to be written.

        Raises:
            FileRefused: One does, and would be lost.
        """
        seen: set[str] = set()
        for path in self.written:
            for above in _above(path):
                if above not in seen and above not in self._removed:
                    self._check_directory(above)
                    seen.add(above)
            if stat.S_ISDIR(self._mode(path) or 0):
                self._check_emptied(path)

    def remove(self) -> None:
        """Remove later files, and directories that become empty."""
        for path in sorted(self._removed, reverse=True):
            self._unlink(path)
            for above in _above(path):
                try:
                    (self.repository_paths.files / above).rmdir()
                except OSError:
                    break
        for path in self.written:
            if stat.S_ISDIR(self._mode(path) or 0):
                for directory, _, _ in os.walk(self.repository_paths.files / path, topdown=False):
                    os.rmdir(directory)

    def _unlink(self, path: str) -> None:
        """Remove a file; a link that is swapped in meanwhile cannot lead out of the workspace."""
        inside = "/".join(filter(None, (self.repository_paths.directory, path)))
        above, _, name = inside.rpartition("/")
        with (
            suppress(FileNotFoundError),
            self.root.opened(above, os.O_RDONLY | os.O_DIRECTORY) as fd,
        ):
            os.unlink(name, dir_fd=fd)

    def _check_directory(self, path: str) -> None:
        mode = self._mode(path)
        if mode is not None and not stat.S_ISDIR(mode):
            self._refuse(path)

    def _check_emptied(self, path: str) -> None:
        for directory, _, names in os.walk(self.repository_paths.files / path):
            for name in names:
                inside = str((Path(directory) / name).relative_to(self.repository_paths.files))
                if inside not in self._removed:
                    self._refuse(inside)

    def _mode(self, path: str) -> int | None:
        try:
            return os.lstat(self.repository_paths.files / path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _refuse(self, path: str) -> None:
        raise errors.wrong_kind(
            path, "path that is in the way", "move it away, or have later files removed"
        )


def _above(path: str) -> Iterator[str]:
    """Yield the parent directories of a path, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _write(
    git: Git, repository_paths: RepositoryPaths, target: str, paths: list[str], until_s: float
) -> Generator[Steps, None, None]:
    if not paths:
        return
    directory = Path(tempfile.mkdtemp(prefix="restore-", dir=git.own()))
    index = directory / "index"
    data = b"".join(os.fsencode(path) + b"\0" for path in paths)
    try:
        yield from git.output(
            repository_paths, ("read-tree", target), until_s, index=index, is_exact=True
        )
        writing = ("checkout-index", "--force", "-z", "--stdin")
        yield from git.output(
            repository_paths, writing, until_s, index=index, is_exact=True, input=data
        )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
