"""Chats and messages as values: what one row of each holds."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from chatd.domain.parts import Part

ChatId = NewType("ChatId", str)
MessageId = NewType("MessageId", int)
OwnerId = NewType("OwnerId", str)
WorkerId = NewType("WorkerId", str)
ExecutionId = NewType("ExecutionId", str)


@dataclass(frozen=True, slots=True)
class Owner:
    """The user whose credentials a turn spends, with the role they had when it was admitted."""

    id: OwnerId
    role: str


class Status(StrEnum):
    """Where the execution of a chat stands."""

    WAITING = "waiting"
    RUNNING = "running"
    INTERRUPTING = "interrupting"
    REQUIRES_ACTION = "requires_action"
    ERROR = "error"


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ErrorKind(StrEnum):
    """What kind of thing went wrong in a turn."""

    GENERIC = "generic"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TurnError:
    """Why a turn failed, in words that are safe to show."""

    message: str
    kind: ErrorKind
    is_retryable: bool = False


@dataclass(frozen=True, slots=True)
class ChatState:
    """The execution of a chat: all that a decision depends on, and nothing else.

    The versions are snapshots: each names the `snapshot_version` at which its subject last changed.
    """

    chat_id: ChatId
    status: Status
    snapshot_version: int
    history_version: int
    generation_attempt: int  # Attempt of the open episode; 0 when none is open.
    next_message_id: MessageId
    owner_epoch: int = 0  # Grows with every claim; tells a former owner from the present one.
    worker_id: WorkerId | None = None
    last_error: TurnError | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that has no place in a history yet."""

    role: Role
    content: tuple[Part, ...]
    created_by: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A committed message."""

    id: MessageId
    revision: int  # Snapshot of the chat at which it last changed.
    role: Role
    content: tuple[Part, ...]
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat with what people see of it."""

    state: ChatState
    owner_id: OwnerId
    title: str
    created_at: datetime
    updated_at: datetime
