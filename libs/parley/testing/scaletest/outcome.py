"""What became of each chat, as a client process tells it."""

from dataclasses import dataclass, field
from enum import StrEnum

from parley.testing.scaletest.checker import Counts


class Stage(StrEnum):
    """Where a chat can fail."""

    CREATE_CHAT = "create_chat"
    CREATE_MESSAGE = "create_message"
    STREAM_OPEN = "stream_open"
    STREAM_ENDED_EARLY = "stream_ended_early"
    STATUS_ERROR = "status_error"
    VERIFICATION = "verification"
    TIMEOUT = "timeout"


@dataclass(slots=True)
class TurnTimes:
    """When things happened in a turn, in seconds since just before its request was sent.

    Attributes:
        began_at: When the request was sent, by the clock that all processes share.
        answered_s: The request was answered.
        running_s: The chat was told to be running; None if that was never seen.
        output_s: The first piece of the answer, or the answer itself.
        over_s: The chat was told to wait again.
    """

    began_at: float
    answered_s: float | None = None
    running_s: float | None = None
    output_s: float | None = None
    over_s: float | None = None


@dataclass(slots=True)
class ChatOutcome:
    """What became of one chat.

    Attributes:
        number: Which of all chats it is.
        chat_id: Its id; empty if it was never created.
        final_status: What was last told of its status.
        failure: Where it failed.
        problem: What was said about that.
        turns: The turns that began.
        counts: What was found in its stream.
        findings: The first things that must not be.
        stream_bytes: What its streams carried.
        cuts: Connections that the client cut on purpose.
        breaks: Connections that ended by themselves.
        refused: Openings of its stream that were refused for the moment, and tried again.
        resent: Requests that were sent again, because they were refused so or nobody answered.
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
        """How many turns came to their end."""
        return sum(turn.over_s is not None for turn in self.turns)

    def fail(self, stage: Stage, problem: str) -> None:
        """Note a failure; the first one counts."""
        if self.failure is None:
            self.failure, self.problem = stage, problem
