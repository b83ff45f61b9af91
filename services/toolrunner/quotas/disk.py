"""What workspaces take of the disk, and when it is worth looking.

Theory: looking means to walk through all files. What a workspace has grown by is missing from what
the file system has free, so as long as less is gone than the workspace has left, it cannot have
passed its quota. Somebody else may have removed as much meanwhile; so whoever runs is looked at now
and then in any case, the more rarely the longer it takes.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolrunner.directories.workspaces import Workspace
from toolrunner.primitives.domain import Quota
from toolrunner.primitives.errors import QuotaExceeded

LOOK_AGAIN_S: Final = 30.0
#: While too much is there: whoever removes files shall be able to go on soon.
LOOK_OVER_S: Final = 1.0
#: Looking takes no more of the time than one part in so many.
SHARE: Final = 20
SHARE_OVER: Final = 4


@dataclass(frozen=True, slots=True)
class Space:
    """What a file system has free."""

    free_bytes: int
    free_inodes: int

    @classmethod
    def of(cls, directory: Path) -> "Space":
        """Ask the file system."""
        found = os.statvfs(directory)
        return cls(found.f_bfree * found.f_frsize, found.f_ffree)


@dataclass(frozen=True, slots=True)
class Use:
    """What a workspace was found to take.

    Attributes:
        disk_bytes: Of the disk.
        inodes: Files and directories.
        space: What was free before it was looked.
        at_s: When, by the monotonic clock.
        took_s: How long it took.
        is_partial: Whether there is something that could not be looked at, which counts as more
            than is allowed.
    """

    disk_bytes: int
    inodes: int
    space: Space
    at_s: float
    took_s: float
    is_partial: bool = False


def is_due(use: Use | None, quota: Quota, space: Space, now_s: float) -> bool:
    """Tell whether a workspace in use has to be looked at again."""
    if not quota.disk_bytes and not quota.inodes:
        return False
    if use is None:
        return True
    if overrun(use, quota) is not None:
        return now_s - use.at_s >= max(LOOK_OVER_S, SHARE_OVER * use.took_s)
    gone_bytes = use.space.free_bytes - space.free_bytes
    gone_inodes = use.space.free_inodes - space.free_inodes
    return (
        (bool(quota.disk_bytes) and gone_bytes >= quota.disk_bytes - use.disk_bytes)
        or (bool(quota.inodes) and gone_inodes >= quota.inodes - use.inodes)
        or now_s - use.at_s >= max(LOOK_AGAIN_S, SHARE * use.took_s)
    )


def overrun(use: Use, quota: Quota) -> QuotaExceeded | None:
    """Return what of a quota is passed."""
    problem = passed(quota, use.disk_bytes, use.inodes)
    if problem is not None or not use.is_partial:
        return problem
    if quota.disk_bytes:
        return QuotaExceeded("disk_bytes", quota.disk_bytes + 1, quota.disk_bytes, is_partial=True)
    return QuotaExceeded("inodes", quota.inodes + 1, quota.inodes, is_partial=True)


def passed(quota: Quota, disk_bytes: int, inodes: int) -> QuotaExceeded | None:
    """Return what of a quota so much would pass."""
    if quota.disk_bytes and disk_bytes > quota.disk_bytes:
        return QuotaExceeded("disk_bytes", disk_bytes, quota.disk_bytes)
    if quota.inodes and inodes > quota.inodes:
        return QuotaExceeded("inodes", inodes, quota.inodes)
    return None


def devices(workspace: Workspace) -> frozenset[int]:
    """Return the file systems on which processes of a workspace write what counts."""
    paths = {*places(workspace)}
    if workspace.options.files is None:
        # An overlay is one by itself.
        paths.add(workspace.root)
    found = set()
    for path in paths:
        with suppress(FileNotFoundError):
            found.add(os.stat(path).st_dev)
    return frozenset(found)


def places(workspace: Workspace) -> tuple[Path, ...]:
    """Return the directories that count: those that processes write, save what is registered."""
    own = [workspace.home, workspace.temporary, workspace.directory / "layer"]
    if workspace.options.files is None and not os.path.ismount(workspace.root):
        own.append(workspace.root)
    return tuple(each for each in own if each.is_dir())
