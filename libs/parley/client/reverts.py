"""Reverts of chats, as values for callers, and their conversion."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from parley.api.chat.v1 import revert_pb2
from parley.api.chat.v1 import revert_service_pb2 as api
from parley.api.workspace.v1 import checkpoint_pb2


class RevertKind(StrEnum):
    """What a revert does to the history."""

    UNSPECIFIED = "unspecified"  # A value newer than this client.
    HISTORY = "history"  # Messages are deleted.
    UNDO = "undo"  # They come back.
    EDIT = "edit"  # They were replaced by an edit, and only files are restored.


class RevertState(StrEnum):
    """How far a revert is."""

    UNSPECIFIED = "unspecified"  # A value newer than this client.
    RUNNING = "running"  # Files are being restored.
    DONE = "done"


class RestoreOutcome(StrEnum):
    """What becomes of a path, or became of it."""

    UNSPECIFIED = "unspecified"  # A value newer than this client.
    RESTORED = "restored"
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"  # Somebody else has changed it since.
    NOT_KEPT = "not_kept"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What a restore of files does, or did.

    Attributes:
        paths: What becomes of each path that is listed.
        omitted: Paths beyond what is listed.
        restored: How many come back.
        conflicts: How many are left because somebody else has changed them.
        lost: How many are left because they are not kept or may not be written.
        is_incomplete: Whether older changes are not known any more.
        running_process_ids: Processes that may write files again.
    """

    paths: dict[str, RestoreOutcome]
    omitted: int = 0
    restored: int = 0
    conflicts: int = 0
    lost: int = 0
    is_incomplete: bool = False
    running_process_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Revert:
    """A revert of a chat.

    Attributes:
        message_id: The first message that it deletes, or that comes back.
        undone_revert_id: The revert that it undoes; empty for none.
        files: What it did to files; None until it is done, and if none were restored.
        done_at: When it was complete; None until then.
        is_undoable: Whether `undo_revert` can undo it.
    """

    id: str
    chat_id: str
    kind: RevertKind
    state: RevertState
    message_id: int
    undone_revert_id: str = ""
    files: RestoreReport | None = None
    done_at: datetime | None = None
    is_undoable: bool = False


@dataclass(frozen=True, slots=True)
class RevertPreview:
    """What a revert would do; `files` is None unless it was asked for."""

    deleted_messages: int
    dropped_messages: int
    files: RestoreReport | None = None


_KIND = {revert_pb2.RevertKind.Value(f"REVERT_KIND_{each.name}"): each for each in RevertKind}
_STATE = {revert_pb2.RevertState.Value(f"REVERT_STATE_{each.name}"): each for each in RevertState}
_OUTCOME = {
    checkpoint_pb2.RestoreOutcome.Value(f"RESTORE_OUTCOME_{each.name}"): each
    for each in RestoreOutcome
}


def revert_of(revert: revert_pb2.Revert) -> Revert:
    """Return a revert."""
    return Revert(
        id=revert.id,
        chat_id=revert.chat_id,
        kind=_KIND.get(revert.kind, RevertKind.UNSPECIFIED),
        state=_STATE.get(revert.state, RevertState.UNSPECIFIED),
        message_id=revert.message_id,
        undone_revert_id=revert.undone_revert_id,
        files=_report_of(revert.files) if revert.HasField("files") else None,
        done_at=revert.done_at.ToDatetime(UTC) if revert.HasField("done_at") else None,
        is_undoable=revert.undoable,
    )


def preview_of(response: api.PreviewRevertResponse) -> RevertPreview:
    """Return what a revert would do."""
    return RevertPreview(
        response.deleted_messages,
        response.dropped_messages,
        _report_of(response.files) if response.HasField("files") else None,
    )


def _report_of(report: checkpoint_pb2.RestoreReport) -> RestoreReport:
    return RestoreReport(
        paths={
            each.path: _OUTCOME.get(each.outcome, RestoreOutcome.UNSPECIFIED)
            for each in report.paths
        },
        omitted=report.omitted,
        restored=report.restored,
        conflicts=report.conflicts,
        lost=report.lost,
        is_incomplete=report.incomplete,
        running_process_ids=tuple(report.running_process_ids),
    )
