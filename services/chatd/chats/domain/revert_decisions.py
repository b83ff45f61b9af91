"""Reverts: messages are deleted from one on, or that is undone, and files are restored with them.

Theory: files and history cannot be committed together. So a revert that restores files is an
intention in the execution row of a chat that runs: its owner restores the files by the id of the
revert, which may be repeated, and then commits the history and the end of the intention at once.
"""

from dataclasses import replace

from chatd.chats.domain.chat import ChatState, Facts, Revert, RevertKind, Status
from chatd.chats.domain.commands import (
    ChangeQueuedMessage,
    DeleteQueuedMessage,
    FailTurn,
    FinishRevert,
    Interrupt,
    Reconcile,
    RecordRetry,
    Release,
    RevertChat,
    SendMessage,
    UndoRevert,
)
from chatd.chats.domain.errors import (
    MessageNotFound,
    NotEditable,
    RevertNotFound,
    RevertSuperseded,
)
from chatd.chats.domain.state_changes import (
    given_up_calls,
    grown,
    queue_changed,
    released,
    running,
)
from chatd.chats.domain.writes import ClearQueue, Write, revert_writes
from chatd.content.domain.messages import Role
from chatd.primitives.domain.ids import NO_MESSAGE, MessageId

#: The commands that are allowed while files are restored.
DURING_REVERT = (
    SendMessage,
    DeleteQueuedMessage,
    ChangeQueuedMessage,
    Interrupt,
    Reconcile,
    RecordRetry,
    FinishRevert,
    FailTurn,
    Release,
)


def require_editable(message_id: MessageId, facts: Facts) -> None:
    """Require that a message is a user's, and not part of a summary.

    Raises:
        MessageNotFound: It does not exist.
        NotEditable: It is another one.
    """
    if facts.target is None:
        raise MessageNotFound(message_id)
    if facts.target.role is not Role.USER or facts.target.is_compressed:
        raise NotEditable(message_id, facts.target.role)


def begun_revert(
    moved: ChatState, command: RevertChat | UndoRevert, facts: Facts
) -> tuple[ChatState, tuple[Write, ...]]:
    """Return a chat that is reverted, or that runs to restore the files first.

    Raises:
        ChatError: There is no such message of a user, or no such revert.
    """
    revert = _requested_revert(command, facts)
    cut, writes = grown(moved, 0), tuple[Write, ...]()
    if moved.queue_length:
        cut, writes = queue_changed(cut, -moved.queue_length), (ClearQueue(),)
    if revert.restores_files:
        return replace(running(cut, command.claimed_by), revert=revert), writes
    done, completing = completed(cut, revert, b"")
    return replace(released(done, Status.WAITING), last_error=None), (*writes, *completing)


def completed(
    moved: ChatState, revert: Revert, report: bytes
) -> tuple[ChatState, tuple[Write, ...]]:
    """Return the chat with the history that a revert leaves, and the writes of it."""
    if revert.kind is RevertKind.EDIT:
        return replace(grown(moved, 0), revert=None), revert_writes(revert, report)
    turn_id, ended = moved.turn_id, given_up_calls(moved)
    first_deleted = revert.replacement_id
    if revert.kind is RevertKind.HISTORY:
        revert = replace(revert, open_calls=moved.pending)
        first_deleted = revert.message_id
    if first_deleted and turn_id >= first_deleted:
        turn_id = NO_MESSAGE
    answers = len(revert.open_calls) if revert.kind is RevertKind.UNDO else 0
    done = replace(grown(moved, answers), revert=None, pending=(), turn_id=turn_id)
    return done, (*revert_writes(revert, report), *ended)


def failed_edit(revert: Revert | None) -> tuple[Write, ...]:
    """Return the record of an edit whose files could not be restored, if `revert` is one.

    Its messages were replaced before, so it can be undone, without files: its turn did not run.
    """
    if revert is None or revert.kind is not RevertKind.EDIT:
        return ()
    return revert_writes(replace(revert, restores_files=False), b"")


def _requested_revert(command: RevertChat | UndoRevert, facts: Facts) -> Revert:
    if isinstance(command, RevertChat):
        require_editable(command.message_id, facts)
        return Revert(
            command.revert_id, RevertKind.HISTORY, command.message_id, command.restores_files
        )
    if facts.undone is None or not facts.undone.revert.is_undoable:
        raise RevertNotFound(command.undone_id)
    if facts.undone.is_superseded:
        raise RevertSuperseded(command.undone_id)
    undone = facts.undone.revert
    return Revert(
        command.revert_id,
        RevertKind.UNDO,
        undone.message_id,
        undone.restores_files,
        undone.revert_id,
        undone.deleted_version or facts.undone.version,
        undone.open_calls,
        undone.replacement_id,
        # An empty report is that of a restore that changed nothing.
        has_restored=bool(facts.undone.report) or undone.kind is RevertKind.HISTORY,
    )
