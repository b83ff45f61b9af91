"""The events of a chat, as a closed union, in the order in which they must be applied.

Every event has the cursor of the reader after it; it is opaque, and following may begin there
again, in this process or in another.
"""

from dataclasses import dataclass
from datetime import datetime

from parley.client.actions import Action, EndedAction
from parley.client.chats import (
    ChatStatus,
    Message,
    QueuedMessage,
    RequiredCall,
    Role,
    TurnError,
)
from parley.client.parts import Part


@dataclass(frozen=True, slots=True)
class PartStreamed:
    """A piece of the answer that is being generated; a preview until its message is committed.

    Attributes:
        cursor: The cursor after it.
        role: The author.
        part: The piece; text, reasoning and arguments come as deltas to append.
        part_index: Position among the parts of the message; equal ones belong together.
        history_version: History version of the episode.
        generation_attempt: Attempt of the episode.
        seq: Number in the episode, from 1 without gaps.
    """

    cursor: str
    role: Role
    part: Part
    part_index: int
    history_version: int
    generation_attempt: int
    seq: int


@dataclass(frozen=True, slots=True)
class MessageCommitted:
    """A message was committed or changed."""

    cursor: str
    message: Message


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """The status changed; `place_in_line` is 0 when the chat does not wait for a worker."""

    cursor: str
    status: ChatStatus
    place_in_line: int = 0


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn ended with an error."""

    cursor: str
    error: TurnError


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """The queue changed; this is the whole queue."""

    cursor: str
    queued: tuple[QueuedMessage, ...]


@dataclass(frozen=True, slots=True)
class ActionRequired:
    """The turn waits for client tools or people; the first of it expires at `deadline_at`."""

    cursor: str
    calls: tuple[RequiredCall, ...]
    deadline_at: datetime | None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionEnded:
    """Actions ended that the chat waited for, in the order of their ends."""

    cursor: str
    actions: tuple[EndedAction, ...]


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """Attempt `attempt` of a model call failed and the next one starts at `retrying_at`."""

    cursor: str
    attempt: int
    delay_s: float
    retrying_at: datetime | None
    error: TurnError | None


@dataclass(frozen=True, slots=True)
class PreviewReset:
    """Discard all parts shown of the message being generated."""

    cursor: str


@dataclass(frozen=True, slots=True)
class PreviewTruncated:
    """Parts of the message being generated were left out, because it exceeds its limit."""

    cursor: str


@dataclass(frozen=True, slots=True)
class HistoryReset:
    """Discard all known messages; they follow again, or only the newest if truncated."""

    cursor: str
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Resync:
    """The stream could not be resumed: discard all known state, which follows again."""

    cursor: str = ""


ChatEvent = (
    PartStreamed
    | MessageCommitted
    | StatusChanged
    | TurnFailed
    | QueueChanged
    | ActionRequired
    | ActionEnded
    | RetryScheduled
    | PreviewReset
    | PreviewTruncated
    | HistoryReset
    | Resync
)
