"""All writes of a decision beside the execution row."""

from dataclasses import dataclass

from chatd.chats.domain.chat import NewMessage, PendingCall
from chatd.content.domain.parts import ToolResult
from chatd.content.domain.tools import Dispatch
from chatd.primitives.domain.ids import MessageId, QueuedMessageId
from chatd.spend.domain.ledger import LedgerEntry


@dataclass(frozen=True, slots=True)
class AppendMessages:
    """Append messages to the history, numbered in order."""

    messages: tuple[NewMessage, ...]


@dataclass(frozen=True, slots=True)
class AnswerPending:
    """Append one tool message per call: its recorded result, or else `reason` as an error."""

    calls: tuple[PendingCall, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class RecordDispatches:
    """Record the calls of a message as dispatched, before any of them is sent."""

    message_id: MessageId
    dispatches: tuple[Dispatch, ...]


@dataclass(frozen=True, slots=True)
class StoreResult:
    """Store the result of a dispatched call until the other calls of the step are done."""

    call: PendingCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class EnqueueMessage:
    """Add a message to the end of the queue."""

    queued_message_id: QueuedMessageId
    message: NewMessage


@dataclass(frozen=True, slots=True)
class DropQueued:
    """Remove one message from the queue."""

    queued_message_id: QueuedMessageId


@dataclass(frozen=True, slots=True)
class MoveToHead:
    """Move one message to the head of the queue."""

    queued_message_id: QueuedMessageId


@dataclass(frozen=True, slots=True)
class PromoteHead:
    """Move the first message of the queue, or the one named, to the end of the history."""

    head: QueuedMessageId | None = None


@dataclass(frozen=True, slots=True)
class ClearQueue:
    """Remove every message from the queue."""


@dataclass(frozen=True, slots=True)
class DeleteMessagesFrom:
    """Mark a message and all messages after it as deleted."""

    message_id: MessageId


@dataclass(frozen=True, slots=True)
class EnterBill:
    """Insert a model call into the ledger, unless it is there already."""

    entry: LedgerEntry


Write = (
    AppendMessages
    | AnswerPending
    | RecordDispatches
    | StoreResult
    | EnqueueMessage
    | DropQueued
    | MoveToHead
    | PromoteHead
    | ClearQueue
    | DeleteMessagesFrom
    | EnterBill
)
