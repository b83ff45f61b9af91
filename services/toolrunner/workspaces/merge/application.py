"""Atomic application of a merge to its parent, also if the service is killed.

Theory: new files are staged inside the parent, so that moving one to its path is one operation of
the file system. The plan file commits the merge: until it is on disk nothing is changed, and once
it is, recovery executes it to the end. A step that fails marks the plan as reverted, on disk too if
that is possible, and all steps are undone. Every step is idempotent. While a step is neither done
nor undone, the plan and the stage are kept: the stage has the only copy of the parent's files.
Without a plan that can be decoded no program knows their paths, and a path may be taken by another
file; then the stage is given to the people of the workspace under a name that they see.
"""

import errno
import logging
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, assert_never

import msgspec

from parley.files import write_atomically
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.copy import copy_content
from toolrunner.filesystem.trash import Trash
from toolrunner.filesystem.tree import (
    BLOCK_BYTES,
    Kind,
    create,
    hand_over,
    look,
    rename_to_free,
)
from toolrunner.primitives.domain import NO_QUOTA, Quota
from toolrunner.primitives.errors import MergeInterrupted, MergeUnfinished
from toolrunner.quotas.disk import passed
from toolrunner.workspaces.merge.applied import AppliedMerge
from toolrunner.workspaces.merge.comparison import STAGE, Change, Side
from toolrunner.workspaces.merge.fork_base import Identity, link_target

logger = logging.getLogger(__name__)

PLAN: Final = "merge.json"
#: Where a plan that cannot be decoded is kept, beside the plan of the next merge.
DAMAGED_PLAN: Final = "merge-damaged.json"
#: The directory for its staged files, in the workspace, with a number.
SET_ASIDE: Final = "unfinished-merge"
DIRECTORY_MODE: Final = 0o755
FILE_MODE: Final = 0o644
_EXECUTABLE: Final = 0o111


class _Named(msgspec.Struct, frozen=True):
    name: bytes  # As bytes: file names need not be UTF-8.

    @property
    def path(self) -> str:
        """The path, relative to the root."""
        return os.fsdecode(self.name)


class MoveAway(_Named, frozen=True, tag="away"):
    """Move an entry to the stage, if it still is the one that was compared."""

    slot: int
    identity: Identity | None  # None for a directory, whose times change with its entries.


class DropDirectory(_Named, frozen=True, tag="drop"):
    """Remove a directory if it is empty."""

    mode: int
    must_go: bool


class MakeDirectory(_Named, frozen=True, tag="make"):
    """Create a directory."""


class MoveIn(_Named, frozen=True, tag="place"):
    """Move a staged file or link to its path, where nothing may exist."""

    slot: int
    inode: int = 0  # Of the staged entry; plans of older versions do not have it.


MergeStep = MoveAway | DropDirectory | MakeDirectory | MoveIn


class MergePlan(msgspec.Struct, frozen=True):
    """The steps of a merge, with its request and response."""

    steps: tuple[MergeStep, ...]
    request_id: str
    method: str
    body_hash: bytes
    response: bytes
    is_turned_back: bool = False
    fork_id: str = ""  # Where the merge is recorded; plans of older versions record nothing.
    applied: AppliedMerge | None = None


def stage(
    changes: tuple[Change, ...], fork: Side, parent: Root, quota: Quota = NO_QUOTA
) -> tuple[MergeStep, ...]:
    """Stage all new files; return the steps of the merge.

    Raises:
        OSError: The disk is full, or the fork cannot be read.
        QuotaExceeded: The parent would exceed its quota.
    """
    _make(parent, STAGE, 0o700)
    _make(parent, f"{STAGE}/new", 0o700)
    _make(parent, f"{STAGE}/old", 0o700)
    steps = (
        *_clearing(changes),
        *_making(changes, parent),
        *_placing(changes, fork, parent, quota),
    )
    owner = os.fstat(parent.fd).st_uid
    if owner != os.geteuid():
        # Only the owner may write there, so new files must belong to it.
        with parent.opened(f"{STAGE}/new", os.O_PATH | os.O_DIRECTORY) as fd:
            hand_over(Root(fd, STAGE), owner)
    return steps


def _clearing(changes: tuple[Change, ...]) -> list[MergeStep]:
    """Return the steps that clear paths: files first, then directories, deepest first."""
    files: list[MergeStep] = []
    directories: list[MergeStep] = []
    for slot, change in enumerate(changes):
        before = change.before
        if before is None or (change.kind is Kind.DIRECTORY and before.kind is Kind.DIRECTORY):
            continue
        if before.kind is not Kind.DIRECTORY:
            files.append(MoveAway(os.fsencode(change.path), slot, before.identity))
        elif change.is_forced:
            directories.append(MoveAway(os.fsencode(change.path), slot, None))
        else:
            mode = stat.S_IMODE(before.seen.st_mode)
            directories.append(
                DropDirectory(os.fsencode(change.path), mode, change.kind is not None)
            )
    return [*files, *sorted(directories, key=lambda step: step.name, reverse=True)]


def _making(changes: tuple[Change, ...], parent: Root) -> list[MergeStep]:
    """Return the directories to create, outermost first, with their missing parents."""
    requested: set[str] = set()
    for change in changes:
        if change.kind is None:
            continue
        above = change.path if change.kind is Kind.DIRECTORY else change.path.rpartition("/")[0]
        while above and above not in requested:
            found = look(parent, above)
            if found is None or found.kind is not Kind.DIRECTORY:
                requested.add(above)
            above = above.rpartition("/")[0]
    return [MakeDirectory(os.fsencode(path)) for path in sorted(requested)]


def _placing(
    changes: tuple[Change, ...], fork: Side, parent: Root, quota: Quota
) -> list[MergeStep]:
    steps: list[MergeStep] = []
    disk_bytes = 0
    for slot, change in enumerate(changes):
        target = f"{STAGE}/new/{slot}"
        if change.kind is Kind.LINK:
            with parent.opened(f"{STAGE}/new", os.O_PATH | os.O_DIRECTORY) as fd:
                os.symlink(link_target(fork.root, change.path), str(slot), dir_fd=fd)
        elif change.kind is Kind.FILE:
            source = parent if change.is_parents else fork.root
            disk_bytes += _stage_file(change, source, parent, target)
        else:
            continue
        staged = look(parent, target)
        if staged is None:
            raise MergeInterrupted(change.path)
        steps.append(MoveIn(os.fsencode(change.path), slot, staged.seen.st_ino))
        if (problem := passed(quota, disk_bytes, len(steps))) is not None:
            raise problem
    return steps


def _stage_file(change: Change, source: Root, parent: Root, target: str) -> int:
    """Stage a file; return its disk space."""
    with os.fdopen(create(parent, target), "wb") as file:
        mode = FILE_MODE
        if change.content is not None:
            file.write(change.content)
        else:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with source.opened(change.path, flags) as original:
                if not stat.S_ISREG(os.fstat(original).st_mode):
                    raise MergeInterrupted(change.path)
                copy_content(original, file.fileno())
                mode = os.fstat(original).st_mode & 0o777
        if change.before is not None and change.before.kind is Kind.FILE:
            mode = change.before.seen.st_mode & 0o777
        readers = (mode & 0o444) >> 2
        os.fchmod(file.fileno(), mode | readers if change.is_executable else mode & ~_EXECUTABLE)
        file.flush()
        return os.fstat(file.fileno()).st_blocks * BLOCK_BYTES


class DamagedPlan(MergeUnfinished):
    """The plan of a merge cannot be decoded, so that it can neither be applied nor undone."""


@dataclass(frozen=True, slots=True)
class Merge:
    """The merge into one parent: its plan on disk and its staged files.

    Attributes:
        directory: The parent's directory, which contains its files.
        root: The parent's files.
    """

    directory: Path
    root: Path

    def pending(self) -> MergePlan | None:
        """Return the plan that was committed and not completed.

        Raises:
            DamagedPlan: There is one that cannot be decoded.
            MergeUnfinished: There may be one, which the disk does not give.
        """
        try:
            return msgspec.json.decode((self.directory / PLAN).read_bytes(), type=MergePlan)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MergeUnfinished(PLAN) from error
        except msgspec.DecodeError as error:
            raise DamagedPlan(PLAN) from error

    def set_aside(self) -> str:
        """Give the staged files of a damaged plan to the workspace, and keep the plan.

        Returns the path of their directory in the workspace, empty if nothing is staged. A call
        that was cut off can be repeated.

        Raises:
            OSError: They cannot be moved.
        """
        root = Root.open_directory(str(self.root))
        try:
            path = _renamed(root, STAGE, SET_ASIDE)
        finally:
            root.close()
        (self.directory / PLAN).replace(self.directory / DAMAGED_PLAN)
        return path

    def decide(self, plan: MergePlan) -> None:
        """Write the plan to disk, which commits the merge."""
        write_atomically(self.directory / PLAN, msgspec.json.encode(plan))

    def carry_out(self, plan: MergePlan) -> None:
        """Execute all steps of a committed plan.

        Raises:
            MergeInterrupted: The parent changed meanwhile; all steps are undone.
            OSError: A step failed; all steps are undone.
            MergeUnfinished: Some steps could not be undone; nothing may be cleared.
        """
        try:
            root = Root.open_directory(str(self.root))
        except OSError as error:
            raise MergeUnfinished(self.directory.name) from error
        try:
            if not plan.is_turned_back:
                try:
                    for step in plan.steps:
                        go_forward(root, step)
                    return
                except (MergeInterrupted, OSError):
                    # On a full disk the steps are undone all the same.
                    with suppress(OSError):
                        self.decide(_turned_back(plan))
                    self._turn_back(root, plan)
                    raise
            self._turn_back(root, plan)
        finally:
            root.close()

    def clear(self) -> None:
        """Remove the plan and all staged files."""
        (self.directory / PLAN).unlink(missing_ok=True)
        staged = self.root / STAGE
        if staged.is_symlink() or staged.is_file():
            staged.unlink()
        elif staged.is_dir():
            # In place: the files may be on another file system than the trash.
            Trash(staged).empty()
            staged.rmdir()

    def _turn_back(self, root: Root, plan: MergePlan) -> None:
        unfinished: MergeUnfinished | None = None
        for step in reversed(plan.steps):
            try:
                go_back(root, step)
            except (MergeInterrupted, OSError) as error:
                # The other files are restored all the same.
                unfinished = MergeUnfinished(step.path)
                unfinished.__cause__ = error
        if unfinished is not None:
            raise unfinished
        if _is_filled(root, f"{STAGE}/old"):
            path = _renamed(root, STAGE, SET_ASIDE)
            logger.error(
                "files of a merge that was undone were set aside, because others took their paths: "
                "%s",
                path,
                extra={"workspace_id": self.directory.name},
            )


def _is_filled(root: Root, path: str) -> bool:
    """Return whether a directory exists and has entries."""
    with (
        suppress(FileNotFoundError, NotADirectoryError),
        root.opened(path, os.O_RDONLY | os.O_DIRECTORY) as fd,
    ):
        return bool(os.listdir(fd))
    return False


def _renamed(root: Root, name: str, wanted: str) -> str:
    """Rename an entry of the root to the first free number of a name; empty if there is none."""
    if look(root, name) is None:
        return ""
    with root.opened("", os.O_PATH | os.O_DIRECTORY) as fd:
        for number in count(1):
            with suppress(FileExistsError):
                free = f"{wanted}-{number}"
                rename_to_free(fd, name, fd, free)
                return free
    raise AssertionError(name)  # Numbers do not end.


def _turned_back(plan: MergePlan) -> MergePlan:
    """Return a plan to undo, without the parts that only an applied merge needs."""
    return msgspec.structs.replace(plan, is_turned_back=True, response=b"", applied=None)


def go_forward(root: Root, step: MergeStep) -> None:
    """Execute a step, or the rest of it.

    Raises:
        MergeInterrupted: Its path is not as it was compared.
        OSError: It failed.
    """
    path = step.path
    match step:
        case MoveAway(slot=slot, identity=identity):
            found = look(root, path)
            if look(root, _old(slot)) is not None or found is None:
                return
            if identity is not None and found.identity != identity:
                raise MergeInterrupted(path)
            _rename(root, path, _old(slot))
        case DropDirectory(must_go=must_go):
            _drop(root, path, must_go=must_go)
        case MakeDirectory():
            _make(root, path, DIRECTORY_MODE)
        case MoveIn(slot=slot):
            if look(root, _new(slot)) is not None:
                _link(root, _new(slot), path)
            elif look(root, f"{STAGE}/new") is None:
                raise MergeInterrupted(path)  # All that was staged is gone.
        case _:
            assert_never(step)


def go_back(root: Root, step: MergeStep) -> None:
    """Undo a step that was completed, begun or never begun."""
    path = step.path
    match step:
        case MoveAway(slot=slot):
            if look(root, _old(slot)) is not None and look(root, path) is None:
                _rename(root, _old(slot), path)
        case DropDirectory(mode=mode):
            if look(root, path) is None:
                _make(root, path, mode)
        case MakeDirectory():
            with suppress(OSError):
                _drop(root, path, must_go=False)
        case MoveIn(slot=slot, inode=inode):
            staged, placed = look(root, _new(slot)), look(root, path)
            if inode == 0 and staged is not None:
                inode = staged.seen.st_ino
            # Its fork has the content, too.
            if placed is not None and placed.seen.st_ino == (inode or placed.seen.st_ino):
                _unlink(root, path)
        case _:
            assert_never(step)


def _old(slot: int) -> str:
    return f"{STAGE}/old/{slot}"


def _new(slot: int) -> str:
    return f"{STAGE}/new/{slot}"


def _split(path: str) -> tuple[str, str]:
    above, _, name = path.rpartition("/")
    return above, name


def _rename(root: Root, path: str, target: str) -> None:
    (above, name), (beside, new_name) = _split(path), _split(target)
    flags = os.O_PATH | os.O_DIRECTORY
    with root.opened(above, flags) as fd, root.opened(beside, flags) as target_fd:
        os.rename(name, new_name, src_dir_fd=fd, dst_dir_fd=target_fd)


def _link(root: Root, staged: str, path: str) -> None:
    """Link a staged file to its path without replacing anything, then remove the staged name."""
    (above, name), (beside, new_name) = _split(staged), _split(path)
    flags = os.O_PATH | os.O_DIRECTORY
    with root.opened(above, flags) as fd, root.opened(beside, flags) as target_fd:
        try:
            os.link(name, new_name, src_dir_fd=fd, dst_dir_fd=target_fd, follow_symlinks=False)
        except FileExistsError as error:
            there = os.stat(new_name, dir_fd=target_fd, follow_symlinks=False)
            if there.st_ino != os.stat(name, dir_fd=fd, follow_symlinks=False).st_ino:
                raise MergeInterrupted(path) from error
        os.unlink(name, dir_fd=fd)


def _unlink(root: Root, path: str) -> None:
    above, name = _split(path)
    with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
        os.unlink(name, dir_fd=fd)


def _drop(root: Root, path: str, *, must_go: bool) -> None:
    above, name = _split(path)
    try:
        with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
            os.rmdir(name, dir_fd=fd)
    except (FileNotFoundError, NotADirectoryError):
        # It was removed already, and its replacement may exist.
        return
    except OSError as error:
        if must_go and error.errno == errno.ENOTEMPTY:
            raise MergeInterrupted(path) from error
        if must_go or error.errno != errno.ENOTEMPTY:
            raise


def _make(root: Root, path: str, mode: int) -> None:
    above, name = _split(path)
    with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
        try:
            os.mkdir(name, mode, dir_fd=fd)
            owner = os.fstat(root.fd).st_uid
            if owner != os.geteuid():
                os.chown(name, owner, owner, dir_fd=fd, follow_symlinks=False)
        except FileExistsError as error:
            if not stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                raise MergeInterrupted(path) from error
