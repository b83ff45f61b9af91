"""Stages the new files of a merge, and plans its steps."""

import os
import stat
from typing import Final

from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.copy import copy_content
from toolrunner.filesystem.tree import BLOCK_BYTES, Kind, create, hand_over, look
from toolrunner.primitives.domain import NO_QUOTA, Quota
from toolrunner.primitives.errors import MergeInterrupted
from toolrunner.quotas.disk import passed
from toolrunner.workspaces.merge.comparison import STAGE, Change, Side
from toolrunner.workspaces.merge.fork_base import link_target
from toolrunner.workspaces.merge.plan import (
    DropDirectory,
    MakeDirectory,
    MergeStep,
    MoveAway,
    MoveIn,
    Places,
    new_path,
)

FILE_MODE: Final = 0o644
_EXECUTABLE: Final = 0o111


def stage(
    changes: tuple[Change, ...], fork: Side, places: Places, quota: Quota = NO_QUOTA
) -> tuple[MergeStep, ...]:
    """Stage all new files; return the steps of the merge.

    Raises:
        OSError: The disk is full, or the fork cannot be read.
        QuotaExceeded: The parent would exceed its quota.
    """
    steps = (
        *_clearing(changes),
        *_making(changes, places.root),
        *_placing(changes, fork, places, quota),
    )
    with places.stage.opened("new", os.O_PATH | os.O_DIRECTORY) as fd:
        give_to_owner(Root(fd, STAGE), places.root)
    return steps


def give_to_owner(tree: Root, parent: Root) -> None:
    """Give a tree to the owner of the parent, who alone may write there."""
    owner = os.fstat(parent.fd).st_uid
    if owner != os.geteuid():
        hand_over(tree, owner)


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
    changes: tuple[Change, ...], fork: Side, places: Places, quota: Quota
) -> list[MergeStep]:
    steps: list[MergeStep] = []
    disk_bytes = 0
    for slot, change in enumerate(changes):
        if change.kind is Kind.LINK:
            with places.stage.opened("new", os.O_PATH | os.O_DIRECTORY) as fd:
                os.symlink(link_target(fork.root, change.path), str(slot), dir_fd=fd)
        elif change.kind is Kind.FILE:
            source = places.root if change.is_parents else fork.root
            disk_bytes += _stage_file(change, source, places.stage, new_path(slot))
        else:
            continue
        staged = look(places.stage, new_path(slot))
        if staged is None:
            raise MergeInterrupted(change.path)
        steps.append(MoveIn(os.fsencode(change.path), slot, staged.seen.st_ino))
        if (problem := passed(quota, disk_bytes, len(steps))) is not None:
            raise problem
    return steps


def _stage_file(change: Change, source: Root, stage: Root, target: str) -> int:
    """Stage a file; return its disk space."""
    with os.fdopen(create(stage, target), "wb") as file:
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
