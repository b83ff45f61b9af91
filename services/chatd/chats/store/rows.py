"""Converts rows to domain values."""

from datetime import datetime

import asyncpg
import msgspec

from chatd.chats.domain.chat import (
    ChatState,
    DoneRevert,
    Message,
    QueuedMessage,
    Revert,
    RevertKind,
    Status,
)
from chatd.chats.store.codec import (
    choice_from_json,
    content_of,
    error_from_json,
    parts_from_json,
    pending_from_json,
    retry_from_json,
    revert_from_json,
)
from chatd.content.domain.messages import (
    ChatMode,
    FinishReason,
    MessageOrigin,
    Role,
    Visibility,
)
from chatd.content.domain.tools import Executor, StoredExecution
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    QueuedMessageId,
    RevertId,
    WorkerId,
)
from chatd.primitives.store.rows import Row
from chatd.spend.store.use_codec import use_from_json


class _Queued(msgspec.Struct, array_like=True):
    """A queued message as `queue_column` returns it; one that was kept with a key has no origin."""

    id: str
    content: str
    created_by: str
    created_at: datetime
    choice: str | None
    origin: MessageOrigin = MessageOrigin.PERSON


_QUEUE_DECODER = msgspec.json.Decoder(tuple[_Queued, ...])


def state_of(row: asyncpg.Record) -> ChatState:
    """Return the execution of a chat."""
    worker_id = row["worker_id"]
    return ChatState(
        chat_id=ChatId(str(row["chat_id"])),
        status=Status(row["status"]),
        snapshot_version=row["snapshot_version"],
        history_version=row["history_version"],
        generation_attempt=row["generation_attempt"],
        next_message_id=MessageId(row["next_message_id"]),
        queue_version=row["queue_version"],
        retry_version=row["retry_version"],
        owner_epoch=row["owner_epoch"],
        worker_id=None if worker_id is None else WorkerId(str(worker_id)),
        takeovers=row["takeovers"],
        archived=row["archived"],
        queue_length=row["queue_length"],
        turn_id=MessageId(row["turn_id"]),
        pending=pending_from_json(row["pending"]),
        compactions=row["compactions"],
        is_compaction_requested=row["is_compaction_requested"],
        deadline_at=row["deadline_at"],
        last_error=error_from_json(row["last_error"]),
        retry=retry_from_json(row["retry"]),
        revert=revert_from_json(row["revert"]),
    )


def message_of(row: Row) -> Message:
    """Return a committed message."""
    role, reason, origin = Role(row["role"]), row["finish_reason"], row["origin"]
    return Message(
        id=MessageId(row["id"]),
        revision=row["revision"],
        role=role,
        content=content_of(row["content"], row["content_version"], role),
        created_by=row["created_by"],
        created_at=row["created_at"],
        visibility=Visibility(row["visibility"]),
        is_compressed=row["is_compressed"],
        is_deleted=row["is_deleted"],
        use=use_from_json(row["use"]),
        choice=choice_from_json(row["choice"]),
        finish_reason=None if reason is None else FinishReason(reason),
        origin=None if origin is None else MessageOrigin(origin),
    )


def queued_message_of(row: asyncpg.Record) -> QueuedMessage:
    """Return a queued message."""
    return QueuedMessage(
        id=QueuedMessageId(str(row["id"])),
        content=parts_from_json(row["content"]),
        created_by=row["created_by"],
        created_at=row["created_at"],
        choice=choice_from_json(row["choice"]),
        origin=MessageOrigin(row["origin"]),
    )


def done_revert_of(row: asyncpg.Record) -> DoneRevert:
    """Return a completed revert."""
    undone_id = row["undone_id"]
    revert = Revert(
        RevertId(str(row["id"])),
        RevertKind(row["kind"]),
        MessageId(row["message_id"]),
        row["restores_files"],
        None if undone_id is None else RevertId(str(undone_id)),
        row["undone_version"],
        pending_from_json(row["open_calls"]),
        MessageId(row["replacement_id"]),
        row["deleted_version"],
    )
    return DoneRevert(
        revert, row["version"], row["report"], row["is_superseded"], row["created_at"]
    )


def stored_execution_of(row: asyncpg.Record) -> StoredExecution:
    """Return a dispatched call."""
    return StoredExecution(
        execution_id=ExecutionId(str(row["execution_id"])),
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        executor=Executor(row["executor"]),
        journal_generation=row["journal_generation"],
        owner_epoch=row["owner_epoch"],
        mode=ChatMode(row["mode"]),
        arguments_digest=row["arguments_digest"],
    )


def queue_column(chat_id: str) -> str:
    """Return an expression for the queue of a chat in the order of execution, NULL if it is empty.

    Read in the same snapshot as the row of the chat: a message moves from the queue to the history
    in one commit, which two statements could miss in both.

    Args:
        chat_id: An expression for the chat's id.
    """
    return f"""(
        SELECT json_agg(json_build_array(
            waiting.id, waiting.content::text, waiting.created_by, waiting.created_at,
            waiting.choice::text, waiting.origin) ORDER BY waiting.position, waiting.id)
        FROM chat.chat_queue waiting WHERE waiting.chat_id = {chat_id})::text"""


def queue_of(text: str | None) -> tuple[QueuedMessage, ...]:
    """Return the queue from the value of such an expression."""
    if text is None:
        return ()
    return tuple(
        QueuedMessage(
            QueuedMessageId(each.id),
            parts_from_json(each.content),
            each.created_by,
            each.created_at,
            choice_from_json(each.choice),
            each.origin,
        )
        for each in _QUEUE_DECODER.decode(text)
    )
