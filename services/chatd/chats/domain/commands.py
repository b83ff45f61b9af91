"""Everything that can be asked of a chat's execution."""

from dataclasses import dataclass
from enum import StrEnum

from chatd.chats.domain.chat import NewMessage, PendingCall, Retry
from chatd.content.domain.messages import TurnError
from chatd.content.domain.parts import ToolResult
from chatd.content.domain.tools import Dispatch
from chatd.primitives.domain.ids import Fence, MessageId, QueuedMessageId, WorkerId
from chatd.spend.domain.ledger import Bill


class BusyBehavior(StrEnum):
    """What a message does that meets a busy chat."""

    QUEUE = "queue"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Take one user message: start a turn, run by `claimed_by` if it has a slot, or queue it."""

    message: NewMessage
    queued_message_id: QueuedMessageId  # Its id in the queue, should it have to wait.
    claimed_by: WorkerId | None
    busy_behavior: BusyBehavior = BusyBehavior.QUEUE


@dataclass(frozen=True, slots=True)
class EditMessage:
    """Replace a user message, drop everything after it and the queue, and run anew."""

    message_id: MessageId
    message: NewMessage
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class DeleteQueuedMessage:
    """Drop a message that waits."""

    queued_message_id: QueuedMessageId


@dataclass(frozen=True, slots=True)
class PromoteQueuedMessage:
    """Let a message that waits go next, interrupting what runs."""

    queued_message_id: QueuedMessageId
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Stop the turn that `turn_id` started, or any (0); a turn that is over is left alone."""

    turn_id: MessageId
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class SubmitToolResults:
    """Answer the calls that the client executes, all of them at once."""

    results: tuple[ToolResult, ...]
    created_by: str
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class RequestCompaction:
    """Summarise the history now."""

    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class SetArchived:
    """Put the chat away or take it back; what it is already is left alone."""

    archived: bool


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Bring a chat whose state is impossible to rest."""


@dataclass(frozen=True, slots=True)
class CancelRequiredAction:
    """Give up on the client's tools because their time is over; the model goes on without them.

    The history that asked for them names the action: one that is over is left alone, and so is
    another that was begun since somebody looked.
    """

    history_version: int
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class CommitStep:
    """Put what a step produced into the history, with the calls that it leaves open."""

    fence: Fence
    messages: tuple[NewMessage, ...]
    dispatches: tuple[Dispatch, ...] = ()
    client_calls: tuple[PendingCall, ...] = ()
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class RecordResult:
    """Keep the result of one call while its siblings still run."""

    fence: Fence
    result: ToolResult


@dataclass(frozen=True, slots=True)
class CommitResults:
    """Put the results of calls into the history, in the order of their calls.

    Attributes:
        results: Those of all recorded calls, and at most one that was not recorded yet, which is
            stored along the way. Empty for the recorded ones as they are stored.
    """

    fence: Fence
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class EnterRequiresAction:
    """Wait, without an owner, for the calls that the client executes."""

    fence: Fence


@dataclass(frozen=True, slots=True)
class CommitCompaction:
    """Put a summary before the history."""

    fence: Fence
    messages: tuple[NewMessage, ...]
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class RecordRetry:
    """Tell the readers of a failed attempt and open the next one."""

    fence: Fence
    retry: Retry
    bill: Bill | None = None  # What the attempt used although it failed.


@dataclass(frozen=True, slots=True)
class FinishTurn:
    """Put the last messages of a turn into the history; go on with the queue or come to rest."""

    fence: Fence
    messages: tuple[NewMessage, ...]
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class FinishInterruption:
    """Keep what an interrupted turn produced; go on with the queue or come to rest."""

    fence: Fence
    messages: tuple[NewMessage, ...]
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class FailTurn:
    """End the turn with an error that its readers see."""

    fence: Fence
    error: TurnError
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """Hand the chat back as it is, for another worker to go on."""

    fence: Fence


UserCommand = (
    SendMessage
    | EditMessage
    | DeleteQueuedMessage
    | PromoteQueuedMessage
    | Interrupt
    | SubmitToolResults
    | RequestCompaction
    | SetArchived
    | Reconcile
    | CancelRequiredAction
)
WorkerCommand = (
    CommitStep
    | RecordResult
    | CommitResults
    | EnterRequiresAction
    | CommitCompaction
    | RecordRetry
    | FinishTurn
    | FinishInterruption
    | FailTurn
    | Release
)
BillingCommand = (
    CommitStep | CommitCompaction | RecordRetry | FinishTurn | FinishInterruption | FailTurn
)
Command = UserCommand | WorkerCommand
