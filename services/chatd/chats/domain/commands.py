"""All commands on a chat's execution."""

from dataclasses import dataclass
from enum import StrEnum

from chatd.chats.domain.chat import NewMessage, PendingCall, Retry
from chatd.content.domain.messages import ChatMode, MessageOrigin, TurnError
from chatd.content.domain.parts import Part, ToolCall, ToolResult
from chatd.content.domain.tools import Dispatch, InputAction
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    Fence,
    MessageId,
    OwnerClaim,
    QueuedMessageId,
    RevertId,
    WorkerId,
)
from chatd.spend.domain.ledger import Bill


class BusyBehavior(StrEnum):
    """What a message does if the chat is busy."""

    QUEUE = "queue"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Add a user message: start a turn, run by `claimed_by` if it has a slot, or queue it.

    It is the answer of an open question or the refusal of a plan, if a caller of the API sent it.

    Attributes:
        claim: The claim of the chat whose tool sends it: without it nothing is written.
    """

    message: NewMessage
    queued_message_id: QueuedMessageId  # Its id in the queue, if it is queued.
    claimed_by: WorkerId | None
    busy_behavior: BusyBehavior = BusyBehavior.QUEUE
    claim: OwnerClaim | None = None


@dataclass(frozen=True, slots=True)
class EditMessage:
    """Replace a user message, drop all messages after it and the queue, and run again.

    Attributes:
        revert_id: The id by which it can be undone; None if it cannot be.
        restores_files: Whether files are restored before it runs, by that id.
    """

    message_id: MessageId
    message: NewMessage
    claimed_by: WorkerId | None
    revert_id: RevertId | None = None
    restores_files: bool = False


@dataclass(frozen=True, slots=True)
class RevertChat:
    """Delete a user message and all messages after it, and the queue; restore files before that."""

    revert_id: RevertId
    message_id: MessageId
    restores_files: bool
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class UndoRevert:
    """Bring back what a revert or an edit deleted, its files too, if nothing was added since.

    What the edited message and its turn added is deleted.
    """

    revert_id: RevertId
    undone_id: RevertId
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class DeleteQueuedMessage:
    """Delete a queued message."""

    queued_message_id: QueuedMessageId


@dataclass(frozen=True, slots=True)
class ChangeQueuedMessage:
    """Replace the content or the choice of a queued message, or move it; None keeps each.

    Attributes:
        place: Its place in the queue, from 1; a place beyond the last is the last.
        origin: The author of the new content.
    """

    queued_message_id: QueuedMessageId
    content: tuple[Part, ...] | None = None
    choice: ModelChoice | None = None
    place: int | None = None
    origin: MessageOrigin | None = None


@dataclass(frozen=True, slots=True)
class PromoteQueuedMessage:
    """Run a queued message next, interrupting the current turn."""

    queued_message_id: QueuedMessageId
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Stop the turn that `turn_id` started, or any (0); a turn that is over is not changed.

    Attributes:
        drops_queue: Whether queued messages are deleted too, so that none starts the next turn.
        claim: The claim of the chat whose tool stops it: without it nothing is written.
    """

    turn_id: MessageId
    claimed_by: WorkerId | None
    drops_queue: bool = False
    claim: OwnerClaim | None = None


@dataclass(frozen=True, slots=True)
class SubmitToolResults:
    """Submit the results of all calls that the client executes."""

    results: tuple[ToolResult, ...]
    created_by: str
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class RequestCompaction:
    """Summarise the history now."""

    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class SetArchived:
    """Archive or unarchive the chat; no effect if it is in that state already."""

    archived: bool


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Bring a chat with an impossible state to rest."""


@dataclass(frozen=True, slots=True)
class RememberedCall:
    """A call that may run in a chat tree from now on: an approval rule of its root.

    Attributes:
        rule_id: The id of the rule; the same call has the same.
        rules_max: How many rules the chat may have; one more is not stored.
        is_for_tainted: Whether it holds after content from outside entered the chat.
        digest: The digest of the call.
    """

    rule_id: str
    root_chat_id: ChatId
    tool: str
    server_id: str
    reason: str
    is_for_tainted: bool
    digest: str
    rules_max: int


@dataclass(frozen=True, slots=True)
class Approved:
    """A person allows a call: it is dispatched in the commit that stores the answer.

    Attributes:
        message_id: The message that contains the call.
        remembered: The rule that lets the same call run from now on; None for none.
    """

    message_id: MessageId
    dispatch: Dispatch
    remembered: RememberedCall | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """The answer is the result of the call; `mode` is the mode of the chat from now on."""

    result: ToolResult
    mode: ChatMode | None = None


@dataclass(frozen=True, slots=True)
class Supplied:
    """The answer is for a running call, which goes on with it at its executor."""

    action: InputAction
    content_json: str = ""


@dataclass(frozen=True, slots=True)
class AnswerAction:
    """Store a person's answer to one action; the last one resumes the turn."""

    action_id: ExecutionId
    answer: Approved | Resolved | Supplied
    answer_json: str  # What the person said.
    created_by: str
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class ExpireAction:
    """End an action that was not answered in time; one that is over is not changed."""

    action_id: ExecutionId | None  # None for a client's call of an older version.
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call that a client or a person has to answer, and the mode of its turn."""

    pending: PendingCall
    call: ToolCall
    mode: ChatMode = ChatMode.ORDINARY


@dataclass(frozen=True, slots=True)
class CommitStep:
    """Add the messages of a step to the history, with its open calls."""

    fence: Fence
    messages: tuple[NewMessage, ...]
    dispatches: tuple[Dispatch, ...] = ()
    asked: tuple[AskedCall, ...] = ()
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class RecordResult:
    """Store the result of one call while other calls of the step still run."""

    fence: Fence
    result: ToolResult


@dataclass(frozen=True, slots=True)
class SuspendCall:
    """Store what a dispatched call asks; it waits at its executor.

    Attributes:
        message_id: The message that contains the call.
        asked: The call as it is pending from now on, and what it asks as arguments.
    """

    fence: Fence
    message_id: MessageId
    asked: AskedCall


@dataclass(frozen=True, slots=True)
class CommitResults:
    """Add the results of calls to the history, in the order of their calls.

    Attributes:
        results: Those of all recorded calls, and at most one that was not recorded yet, which is
            stored along. Empty for the recorded ones as they are stored.
    """

    fence: Fence
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class EnterRequiresAction:
    """Wait, without an owner, for the calls that a client or a person has to answer."""

    fence: Fence


@dataclass(frozen=True, slots=True)
class CommitCompaction:
    """Add a summary, which becomes the start of the prompt."""

    fence: Fence
    messages: tuple[NewMessage, ...]
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class RecordRetry:
    """Publish a failed attempt and open the next one, or publish that its call is held back."""

    fence: Fence
    retry: Retry
    bill: Bill | None = None  # Billed usage of the failed attempt.


@dataclass(frozen=True, slots=True)
class FinishTurn:
    """Add the last messages of a turn to the history; continue with the queue or rest."""

    fence: Fence
    messages: tuple[NewMessage, ...]
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class FinishInterruption:
    """Store the output of an interrupted turn; continue with the queue or rest."""

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
class FinishRevert:
    """Commit the history of a revert whose files are restored; continue with the queue or rest.

    Attributes:
        report: What was done to files, encoded.
    """

    fence: Fence
    report: bytes


@dataclass(frozen=True, slots=True)
class Release:
    """Release the chat unchanged, for another worker to continue."""

    fence: Fence


UserCommand = (
    SendMessage
    | EditMessage
    | RevertChat
    | UndoRevert
    | DeleteQueuedMessage
    | ChangeQueuedMessage
    | PromoteQueuedMessage
    | Interrupt
    | SubmitToolResults
    | RequestCompaction
    | SetArchived
    | Reconcile
    | AnswerAction
    | ExpireAction
)
WorkerCommand = (
    CommitStep
    | RecordResult
    | SuspendCall
    | CommitResults
    | EnterRequiresAction
    | CommitCompaction
    | RecordRetry
    | FinishTurn
    | FinishInterruption
    | FailTurn
    | FinishRevert
    | Release
)
BillingCommand = (
    CommitStep | CommitCompaction | RecordRetry | FinishTurn | FinishInterruption | FailTurn
)
Command = UserCommand | WorkerCommand
