"""What happens in a chat, as a closed union, in the order it must be applied.

Every event carries the cursor at which a reader stands after it; it is opaque, and following may
begin there again, in this process or in another.
"""

from dataclasses import dataclass
from datetime import datetime

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
    """A piece of the answer that is being written; a courtesy until its message is committed.

    Attributes:
        cursor: Where a reader stands now.
        role: Who speaks.
        part: The piece; text, reasoning and arguments come as deltas to append.
        part_index: Position among the parts of the message; equal ones belong together.
        history_version: History version of the episode.
        generation_attempt: Attempt of the episode.
        seq: Place in the episode, from 1 without gaps.
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
    """The status changed; the place in line for a worker is 0 when there is none to wait for."""

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
    """The queue changed; this is all of it."""

    cursor: str
    queued: tuple[QueuedMessage, ...]


@dataclass(frozen=True, slots=True)
class ActionRequired:
    """The turn waits for results of client tools, until they are cancelled at `deadline_at`."""

    cursor: str
    calls: tuple[RequiredCall, ...]
    deadline_at: datetime | None


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
    """All parts shown of the message being written are void."""

    cursor: str


@dataclass(frozen=True, slots=True)
class PreviewTruncated:
    """Parts of the message being written were left out, because it grew over its bound."""

    cursor: str


@dataclass(frozen=True, slots=True)
class HistoryReset:
    """All messages known are void; they follow again, or only the newest if truncated."""

    cursor: str
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Resync:
    """The stream could not be resumed: everything known is void and all of it follows again."""

    cursor: str = ""


ChatEvent = (
    PartStreamed
    | MessageCommitted
    | StatusChanged
    | TurnFailed
    | QueueChanged
    | ActionRequired
    | RetryScheduled
    | PreviewReset
    | PreviewTruncated
    | HistoryReset
    | Resync
)
