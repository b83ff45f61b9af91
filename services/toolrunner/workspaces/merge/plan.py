"""The plan of a merge: its steps, and where they are executed."""

import os
from dataclasses import dataclass

import msgspec

from toolrunner.filesystem.beneath import Root
from toolrunner.workspaces.merge.applied import AppliedMerge
from toolrunner.workspaces.merge.fork_base import Identity


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
    is_private: bool = False  # Where files are staged; older versions did it in the workspace.


@dataclass(frozen=True, slots=True)
class Places:
    """Where a merge works.

    Attributes:
        root: The parent's files.
        stage: The staged files: `new` ones, and `old` ones of the parent.
        is_private: Whether programs of the workspace cannot change what is staged.
    """

    root: Root
    stage: Root
    is_private: bool


def new_path(slot: int) -> str:
    """Return the path of a staged file in the stage."""
    return f"new/{slot}"
