"""Applied merges of a fork: their time, paths and patches, kept beside the base of the fork.

A comparison of a fork with its parent is empty after the changes of the fork were applied. So that
people still see what an agent did, the node keeps the patches of each merge with the fork, and a
dry run returns them. They are removed with the fork.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from parley.files import write_atomically
from toolrunner.workspaces.merge.patches import Patch

APPLIED: Final = "applied.json"
#: Older merges are forgotten.
MERGES_MAX: Final = 20
#: Of each merge.
PATHS_MAX: Final = 500
#: Of all merges together, as UTF-8; the oldest lose their paths first.
PATHS_BYTES_MAX: Final = 256 * 1024
#: Of all merges together; the oldest lose their patches first.
PATCHES_BYTES_MAX: Final = 512 * 1024


class AppliedMerge(msgspec.Struct, frozen=True):
    """A merge that was applied.

    Attributes:
        request_id: The request that applied it.
        names: The paths that were written or deleted, as bytes: file names need not be UTF-8.
        omitted: Paths beyond those that are listed.
        patches: The paths of texts, and their changes.
    """

    request_id: str
    applied_at: datetime
    names: tuple[bytes, ...]
    omitted: int
    patches: tuple[tuple[bytes, str], ...]


def applied_merge(
    request_id: str, applied_at: datetime, paths: Sequence[str], patches: Sequence[Patch]
) -> AppliedMerge:
    """Return the record of a merge, within its limits."""
    kept: list[tuple[bytes, str]] = []
    room = PATCHES_BYTES_MAX
    for patch in patches:
        room -= len(patch.text.encode())
        if room < 0:
            break
        kept.append((os.fsencode(patch.path), patch.text))
    names = tuple(map(os.fsencode, paths[:PATHS_MAX]))
    omitted = len(paths) - len(names)
    (merge,) = _bounded((AppliedMerge(request_id, applied_at, names, omitted, tuple(kept)),))
    return merge


def applied_merges(directory: Path) -> tuple[AppliedMerge, ...]:
    """Return the merges of the fork in a directory, the newest first; none if unreadable."""
    try:
        stored = (directory / APPLIED).read_bytes()
        # Bounded again: older versions stored more.
        return _bounded(msgspec.json.decode(stored, type=tuple[AppliedMerge, ...]))
    except (FileNotFoundError, msgspec.DecodeError):
        return ()


def add_applied(directory: Path, merge: AppliedMerge) -> None:
    """Store a merge with its fork, once; nothing is stored for a fork that was removed."""
    if not directory.is_dir():
        return
    known = applied_merges(directory)
    if any(each.request_id == merge.request_id for each in known):
        return
    merges = _bounded((merge, *known[: MERGES_MAX - 1]))
    write_atomically(directory / APPLIED, msgspec.json.encode(merges))


def _bounded(merges: Sequence[AppliedMerge]) -> tuple[AppliedMerge, ...]:
    """Return the merges, the newest with paths and patches as long as there is room for them."""
    patches_room, paths_room = PATCHES_BYTES_MAX, PATHS_BYTES_MAX
    bounded: list[AppliedMerge] = []
    for merge in merges:
        patches_room -= sum(len(text.encode()) for _, text in merge.patches)
        patches = merge.patches if patches_room >= 0 else ()
        names: list[bytes] = []
        for name in merge.names:
            paths_room -= len(name.decode(errors="replace").encode())
            if paths_room < 0:
                break
            names.append(name)
        omitted = merge.omitted + len(merge.names) - len(names)
        bounded.append(
            msgspec.structs.replace(merge, names=tuple(names), omitted=omitted, patches=patches)
        )
    return tuple(bounded)
