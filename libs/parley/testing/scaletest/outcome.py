"""The outcome of each chat, as reported by a client process."""

from dataclasses import dataclass, field
from enum import StrEnum

from parley.testing.scaletest.checker import Counts


class Stage(StrEnum):
    """The stage at which a chat can fail."""

    CREATE_CHAT = "create_chat"
    CREATE_MESSAGE = "create_message"
    STREAM_OPEN = "stream_open"
    STREAM_ENDED_EARLY = "stream_ended_early"
    STATUS_ERROR = "status_error"
    VERIFICATION = "verification"
    TIMEOUT = "timeout"


@dataclass(slots=True)
class TurnTimes:
    """The times of a turn, in seconds since just before its request was sent.

    Attributes:
        began_at: When the request was sent, by the clock that all processes share.
        answered_s: The request was answered.
        running_s: The status running was received; None if it never was.
        output_s: The first piece of the answer, or the answer itself, was received.
        over_s: The status waiting was received again.
    """

    began_at: float
    answered_s: float | None = None
    running_s: float | None = None
    output_s: float | None = None
    over_s: float | None = None


@dataclass(slots=True)
class ChatOutcome:
    """The outcome of one chat.

    Attributes:
        number: Its number among all chats.
        chat_id: Its id; empty if it was never created.
        final_status: The last received status.
        failure: The stage at which it failed.
        problem: The text of that failure.
        turns: The turns that began.
        counts: The counts of its stream.
        findings: The first faults.
        stream_bytes: The bytes received on its streams.
        cuts: Connections that the client closed on purpose.
        breaks: Connections that ended otherwise.
        refused: Temporary refusals of its stream, which were retried.
        resent: Requests that were retried after a temporary refusal or no answer.
        is_left: Whether it could not be deleted.
    """

    number: int
    chat_id: str = ""
    final_status: str = ""
    failure: Stage | None = None
    problem: str = ""
    turns: list[TurnTimes] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    findings: list[str] = field(default_factory=list)
    stream_bytes: int = 0
    cuts: int = 0
    breaks: int = 0
    refused: int = 0
    resent: int = 0
    is_left: bool = False

    @property
    def turns_completed(self) -> int:
        """The number of finished turns."""
        return sum(turn.over_s is not None for turn in self.turns)

    def fail(self, stage: Stage, problem: str) -> None:
        """Record a failure; only the first one is kept."""
        if self.failure is None:
            self.failure, self.problem = stage, problem
