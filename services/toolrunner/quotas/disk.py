"""Disk usage of workspaces, and when it has to be measured.

Theory: a measurement walks all files. Growth of a workspace reduces the free space of the file
system, so as long as less space is gone than the workspace has left, it cannot have exceeded its
quota. Other processes may have freed as much meanwhile; so active workspaces are also measured
periodically, less often the longer it takes.
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
#: While the quota is exceeded: a user who removes files should be able to continue soon.
LOOK_OVER_S: Final = 1.0
#: Measuring takes at most 1/SHARE of the time, 1/SHARE_OVER while the quota is exceeded.
SHARE: Final = 20
SHARE_OVER: Final = 4


@dataclass(frozen=True, slots=True)
class Space:
    """The free space of a file system."""

    free_bytes: int
    free_inodes: int

    @classmethod
    def of(cls, directory: Path) -> "Space":
        """Read it from the file system."""
        found = os.statvfs(directory)
        return cls(found.f_bfree * found.f_frsize, found.f_ffree)


@dataclass(frozen=True, slots=True)
class Use:
    """The measured disk usage of a workspace.

    Attributes:
        disk_bytes: Bytes on disk.
        inodes: Files and directories.
        space: The free space before the measurement.
        at_s: When, by the monotonic clock.
        took_s: How long it took.
        is_partial: Whether some files could not be read, which counts as exceeding the quota.
    """

    disk_bytes: int
    inodes: int
    space: Space
    at_s: float
    took_s: float
    is_partial: bool = False


def is_due(use: Use | None, quota: Quota, space: Space, now_s: float) -> bool:
    """Return whether an active workspace has to be measured again."""
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
    """Return the exceeded part of a quota, if any."""
    problem = passed(quota, use.disk_bytes, use.inodes)
    if problem is not None or not use.is_partial:
        return problem
    if quota.disk_bytes:
        return QuotaExceeded("disk_bytes", quota.disk_bytes + 1, quota.disk_bytes, is_partial=True)
    return QuotaExceeded("inodes", quota.inodes + 1, quota.inodes, is_partial=True)


def passed(quota: Quota, disk_bytes: int, inodes: int) -> QuotaExceeded | None:
    """Return the part of a quota that such a usage exceeds, if any."""
    if quota.disk_bytes and disk_bytes > quota.disk_bytes:
        return QuotaExceeded("disk_bytes", disk_bytes, quota.disk_bytes)
    if quota.inodes and inodes > quota.inodes:
        return QuotaExceeded("inodes", inodes, quota.inodes)
    return None


def devices(workspace: Workspace) -> frozenset[int]:
    """Return the file systems on which a workspace's processes write files that count."""
    paths = {*places(workspace)}
    if workspace.options.files is None:
        # An overlay is a device of its own.
        paths.add(workspace.root)
    found = set()
    for path in paths:
        with suppress(FileNotFoundError):
            found.add(os.stat(path).st_dev)
    return frozenset(found)


def places(workspace: Workspace) -> tuple[Path, ...]:
    """Return the directories that count: the writable ones, except a registered directory."""
    own = [workspace.home, workspace.temporary, workspace.scratch, workspace.directory / "layer"]
    if workspace.options.files is None and not os.path.ismount(workspace.root):
        own.append(workspace.root)
    return tuple(each for each in own if each.is_dir())
