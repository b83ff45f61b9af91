"""The merge of a fork into the workspace that it was copied from."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class MergeStrategy(StrEnum):
    """What becomes of paths that both sides changed."""

    REPORT = "report"  # Nothing is merged if there is a conflict.
    KEEP_PARENT = "keep_parent"
    TAKE_FORK = "take_fork"


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A merge of a fork.

    Attributes:
        request_id: The id under which the node executes it once.
        paths: The paths to merge, with everything below them; empty for all.
        is_dry: Whether nothing is written, and the report contains the patches.
        chat_id: The chat whose turn merges, and whose revert takes it back; empty for a person.
        turn_id: The message that started that turn.
        owner_epoch: The epoch of the chat's owner; a node refuses one that was replaced.
    """

    request_id: str
    strategy: MergeStrategy = MergeStrategy.REPORT
    paths: tuple[str, ...] = ()
    is_dry: bool = False
    chat_id: str = ""
    turn_id: int = 0
    owner_epoch: int = 0


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """A path that both sides changed.

    Attributes:
        kind: How it conflicts, as in the proto.
        preview: Both versions with conflict marks; empty if they are not texts.
    """

    path: str
    kind: str
    preview: str = ""


@dataclass(frozen=True, slots=True)
class MergePatch:
    """The change of one file as a unified diff."""

    path: str
    patch: str


@dataclass(frozen=True, slots=True)
class AppliedMerge:
    """A merge of a fork that was applied.

    Attributes:
        omitted: Paths beyond those that are listed.
    """

    applied_at: datetime
    paths: tuple[str, ...]
    omitted: int = 0
    patches: tuple[MergePatch, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeReport:
    """The result of a merge.

    Attributes:
        omitted: Paths and conflicts beyond those that are listed.
        patches: The changes of texts, for a merge that writes nothing.
        left_out_paths: Caches that differ, and what no merge can take over.
        applied_merges: Merges that were applied before, for a merge that writes nothing.
    """

    is_applied: bool
    merged_paths: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    omitted: int = 0
    patches: tuple[MergePatch, ...] = ()
    left_out_paths: tuple[str, ...] = ()
    applied_merges: tuple[AppliedMerge, ...] = ()
