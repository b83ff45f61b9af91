"""Chats and messages as values."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from chatd.content.domain.messages import (
    FinishReason,
    MessageOrigin,
    Role,
    TurnError,
    Visibility,
)
from chatd.content.domain.parts import Fallback, Part
from chatd.content.domain.tools import SUSPENDED, InputAnswer, InputRequired, PendingKind
from chatd.models.domain.price import ModelUse
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.ids import (
    NO_MESSAGE,
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    OwnerId,
    QueuedMessageId,
    RevertId,
    WorkerId,
)

QUEUE_LENGTH_MAX = 20


class Status(StrEnum):
    """The execution status of a chat."""

    WAITING = "waiting"
    RUNNING = "running"
    INTERRUPTING = "interrupting"
    REQUIRES_ACTION = "requires_action"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Retry:
    """A failed attempt, or one that waits because its call was held back, and the wait.

    A call is held back by the circuit breaker or the retry budget: it was not made, so the attempt
    stays the same.
    """

    attempt: int
    delay_ms: int
    retrying_at: datetime
    error: TurnError
    unreachable_since: datetime | None = None  # First attempt of the current unreachable series.
    held_back_since: datetime | None = None  # When the call of this attempt was first held back.
    fallback: Fallback | None = None  # Set if another model makes the next attempt.
    outage_since: datetime | None = None  # First failure of the current outage of the provider.


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call of the last assistant message that has no result in the history yet.

    Attributes:
        execution_id: The execution of a dispatched call, and the action id of any other; None only
            for calls of clients that were stored by older versions.
        is_recorded: Whether the result is stored with the call and waits for the other calls of the
            step.
        deadline_s: How long it may be waited for once the chat waits; None for ever.
        reason: Why a person is asked to allow it.
        question: What a call asks that waits at its executor.
        question_id: The action that asks it.
        answer: The answer to the last question of a dispatched call, for its executor.
    """

    tool_call_id: str
    tool_name: str
    execution_id: ExecutionId | None = None
    mcp_server_id: str = ""
    is_recorded: bool = False
    kind: PendingKind = PendingKind.DISPATCHED
    deadline_s: float | None = None
    reason: str = ""
    question: InputRequired | None = None
    question_id: ExecutionId | None = None
    answer: InputAnswer | None = None

    @property
    def is_dispatched(self) -> bool:
        """Return whether an executor runs it and asks nothing."""
        return self.kind is PendingKind.DISPATCHED

    @property
    def is_suspended(self) -> bool:
        """Return whether it waits at its executor for an answer."""
        return self.kind in SUSPENDED and not self.is_recorded

    @property
    def action_id(self) -> ExecutionId | None:
        """Return the id of the action that asks for it, if one does."""
        return self.question_id or self.execution_id

    @property
    def is_asked(self) -> bool:
        """Return whether a client or a person has still to answer it."""
        return not self.is_dispatched and not self.is_recorded


class RevertKind(StrEnum):
    """What a revert does to the history."""

    HISTORY = "history"  # Messages are deleted.
    UNDO = "undo"  # They come back; what replaced them is deleted.
    EDIT = "edit"  # They are replaced, before files are restored.


@dataclass(frozen=True, slots=True)
class Revert:
    """A revert of a chat.

    Attributes:
        revert_id: Its id, which the restore of files has too.
        kind: What it does to the history.
        message_id: The first message that it deletes, or that comes back.
        restores_files: Whether files are restored too.
        undone_id: The revert that it undoes; None for none.
        undone_version: The snapshot version at which that one deleted messages.
        open_calls: The calls without a result among the messages that are deleted, or come back.
        replacement_id: The message by which an edit replaced them, or which an undo deletes with
            all messages after it; no message for other reverts.
        deleted_version: The snapshot version at which an edit deleted messages; 0 for other
            reverts, and for edits of older versions, which cannot be undone.
        has_restored: Whether the one that it undoes restored files.
    """

    revert_id: RevertId
    kind: RevertKind
    message_id: MessageId
    restores_files: bool
    undone_id: RevertId | None = None
    undone_version: int = 0
    open_calls: tuple[PendingCall, ...] = ()
    replacement_id: MessageId = NO_MESSAGE
    deleted_version: int = 0
    has_restored: bool = field(default=True, compare=False)

    @property
    def is_undoable(self) -> bool:
        """Return whether it is of a kind that can be undone."""
        is_edit = self.kind is RevertKind.EDIT and self.deleted_version > 0
        return self.kind is RevertKind.HISTORY or is_edit


@dataclass(frozen=True, slots=True)
class DoneRevert:
    """A completed revert.

    Attributes:
        revert: The revert.
        version: The snapshot version that it made.
        report: What it did to files, encoded; empty if none were restored.
        is_superseded: Whether messages were added or changed since, or by the commit that completed
            it: a message that was queued while files were restored. After an edit a later message
            of a person or a later deletion.
        done_at: When it was completed.
    """

    revert: Revert
    version: int
    report: bytes = b""
    is_superseded: bool = False
    done_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ChatState:
    """The execution of a chat: the complete input of a decision.

    The versions are snapshots: each is the `snapshot_version` at which its subject last changed.
    """

    chat_id: ChatId
    status: Status
    snapshot_version: int
    history_version: int
    generation_attempt: int  # Attempt of the open episode; 0 when none was opened yet.
    next_message_id: MessageId
    queue_version: int = 0
    retry_version: int = 0
    owner_epoch: int = 0  # Grows with every claim; identifies the current owner.
    worker_id: WorkerId | None = None
    takeovers: int = 0  # Owners that died during this turn since it last made progress.
    archived: bool = False
    queue_length: int = 0
    turn_id: MessageId = NO_MESSAGE  # User message that started the current or last turn.
    pending: tuple[PendingCall, ...] = ()
    compactions: int = 0  # Automatic ones in this turn.
    is_compaction_requested: bool = False
    deadline_at: datetime | None = None
    last_error: TurnError | None = None
    retry: Retry | None = None
    revert: Revert | None = None  # Its files are to be restored before anything else.


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that has no id in a history yet."""

    role: Role
    content: tuple[Part, ...]
    created_by: str = ""
    visibility: Visibility = Visibility.BOTH
    is_compressed: bool = False
    use: ModelUse | None = None
    choice: ModelChoice | None = None  # Of a user's message; completed by the store.
    finish_reason: FinishReason | None = None  # Of a model's answer.
    origin: MessageOrigin = MessageOrigin.SYSTEM  # Of a user's message.

    @property
    def stored_origin(self) -> MessageOrigin | None:
        """Return the origin of a user's message; other messages have none."""
        return self.origin if self.role is Role.USER else None

    def stored(self, message_id: "MessageId", revision: int, at: datetime) -> "Message":
        """Return the message as it is stored in a history."""
        return Message(
            id=message_id,
            revision=revision,
            role=self.role,
            content=self.content,
            created_by=self.created_by,
            created_at=at,
            visibility=self.visibility,
            is_compressed=self.is_compressed,
            use=self.use,
            choice=self.choice,
            finish_reason=self.finish_reason,
            origin=self.stored_origin,
        )


@dataclass(frozen=True, slots=True)
class Message:
    """A committed message."""

    id: MessageId
    revision: int  # Snapshot of the chat at which it last changed.
    role: Role
    content: tuple[Part, ...]
    created_by: str
    created_at: datetime
    visibility: Visibility = Visibility.BOTH
    is_compressed: bool = False
    is_deleted: bool = False
    use: ModelUse | None = None
    choice: ModelChoice | None = None  # The model choice of a user message's turn.
    finish_reason: FinishReason | None = None  # Of a model's answer; older ones have none.
    origin: MessageOrigin | None = None  # Of a user's message.


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A queued message."""

    id: QueuedMessageId
    content: tuple[Part, ...]
    created_by: str
    created_at: datetime
    choice: ModelChoice | None = None
    origin: MessageOrigin = MessageOrigin.PERSON


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat with the data that users see."""

    state: ChatState
    owner_id: OwnerId
    title: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Claimed:
    """A chat after a claim, with the user whose credentials it uses."""

    state: ChatState
    owner: Owner


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The right to run one chat; it is released once."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts a decision may need; those that its command does not need stay empty.

    Attributes:
        is_queued: Whether the queued message that the command names exists.
        is_queue_head: Whether it is the first.
        target: The live message that the command names.
        has_material: Whether the model answered since the last summary.
        undone: The revert that the command undoes.
    """

    is_queued: bool = False
    is_queue_head: bool = False
    target: Message | None = None
    has_material: bool = False
    undone: DoneRevert | None = None


NO_FACTS = Facts()
