"""All writes of a decision beside the execution row."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from chatd.chats.domain.chat import ChatState, NewMessage, PendingCall, Revert, RevertKind
from chatd.chats.domain.commands import (
    AskedCall,
    BillingCommand,
    RememberedCall,
    WorkerCommand,
)
from chatd.content.domain.messages import ChatMode, MessageOrigin
from chatd.content.domain.parts import Part, ToolResult
from chatd.content.domain.tools import Dispatch
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.ids import ExecutionId, MessageId, QueuedMessageId
from chatd.spend.domain.ledger import LedgerEntry

REVERTED = "The call was given up because the chat was reverted."


@dataclass(frozen=True, slots=True)
class AppendMessages:
    """Append messages to the history, numbered in order."""

    messages: tuple[NewMessage, ...]


@dataclass(frozen=True, slots=True)
class AnswerPending:
    """Append one tool message per call: the result given now, the recorded one, or an error.

    Attributes:
        reason: The error of calls without a result.
        given: Results that come with the write, answered by `given_by`.
    """

    calls: tuple[PendingCall, ...]
    reason: str
    given: tuple[ToolResult, ...] = ()
    given_by: str = ""


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


class ActionOutcome(StrEnum):
    """How an action ended."""

    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class OpenActions:
    """Store the actions of a message's calls; their deadlines begin when the chat waits."""

    message_id: MessageId
    asked: tuple[AskedCall, ...]


@dataclass(frozen=True, slots=True)
class StartDeadlines:
    """Let the deadlines of the chat's open actions begin."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The end of one action; an approved call has no result yet."""

    action_id: ExecutionId
    answer_json: str
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True)
class EndActions:
    """Store how actions ended, with their answers."""

    answers: tuple[StoredAnswer, ...]
    outcome: ActionOutcome
    ended_by: str = ""


@dataclass(frozen=True, slots=True)
class CancelActions:
    """Mark all open actions of the chat as cancelled."""


@dataclass(frozen=True, slots=True)
class CancelCalls:
    """Have calls cancelled at their executors, for as long as that takes."""

    execution_ids: tuple[ExecutionId, ...]


@dataclass(frozen=True, slots=True)
class RememberCall:
    """Store an approval rule for a call, in place of an earlier one of the same call."""

    call: RememberedCall


@dataclass(frozen=True, slots=True)
class SetMode:
    """Change the mode of the chat."""

    mode: ChatMode


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
class ChangeQueued:
    """Change what one message of the queue says or chooses, or its place; None keeps each."""

    queued_message_id: QueuedMessageId
    content: tuple[Part, ...] | None
    choice: ModelChoice | None
    place: int | None
    origin: MessageOrigin | None = None


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
class RestoreMessages:
    """Bring back the messages that were deleted at a version."""

    version: int


@dataclass(frozen=True, slots=True)
class RecordRevert:
    """Record a completed revert, with what it did to files, and restore the mode of the chat."""

    revert: Revert
    report: bytes


@dataclass(frozen=True, slots=True)
class EnterBill:
    """Insert a model call into the ledger, unless it is there already."""

    entry: LedgerEntry


Write = (
    AppendMessages
    | AnswerPending
    | RecordDispatches
    | StoreResult
    | OpenActions
    | StartDeadlines
    | EndActions
    | CancelActions
    | CancelCalls
    | RememberCall
    | SetMode
    | EnqueueMessage
    | DropQueued
    | ChangeQueued
    | MoveToHead
    | PromoteHead
    | ClearQueue
    | DeleteMessagesFrom
    | RestoreMessages
    | RecordRevert
    | EnterBill
)


def revert_writes(revert: Revert, report: bytes) -> tuple[Write, ...]:
    """Return the writes that complete a revert."""
    record = RecordRevert(revert, report)
    match revert.kind:
        case RevertKind.HISTORY:
            return (DeleteMessagesFrom(revert.message_id), record)
        case RevertKind.UNDO:
            calls, replacement_id = revert.open_calls, revert.replacement_id
            replaced = (DeleteMessagesFrom(replacement_id),) if replacement_id else ()
            answers = (AnswerPending(calls, REVERTED),) if calls else ()
            return (*replaced, RestoreMessages(revert.undone_version), *answers, record)
        case RevertKind.EDIT:
            return (record,)


def entered_bills(
    state: ChatState, command: WorkerCommand, writes: Iterable[Write]
) -> tuple[EnterBill, ...]:
    """Return the ledger entry for the model call of a command decided on `state`, if it has one."""
    if not isinstance(command, BillingCommand) or command.bill is None:
        return ()
    entry = LedgerEntry(
        state.chat_id,
        command.fence.history_version,
        command.fence.generation_attempt,
        command.bill,
        _answer_id(state.next_message_id, writes),
    )
    return (EnterBill(entry),)


def _answer_id(next_id: MessageId, writes: Iterable[Write]) -> MessageId | None:
    """Return the message id of the billed answer."""
    for write in writes:
        match write:
            case AnswerPending(calls):
                next_id = MessageId(next_id + len(calls))
            case AppendMessages(messages):
                for place, message in enumerate(messages):
                    if message.use is not None:
                        return MessageId(next_id + place)
                next_id = MessageId(next_id + len(messages))
            case _:
                pass
    return None
