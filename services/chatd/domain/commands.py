"""Everything that can be asked of a chat's execution."""

from dataclasses import dataclass

from chatd.domain.chat import NewMessage, TurnError, WorkerId
from chatd.domain.tools import Dispatch


@dataclass(frozen=True, slots=True)
class Fence:
    """What a worker captured when it claimed a chat; its every write must still match it."""

    owner_epoch: int
    history_version: int
    generation_attempt: int


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Take one user message and start a turn, run by `claimed_by` if it has a free slot."""

    message: NewMessage
    claimed_by: WorkerId | None


@dataclass(frozen=True, slots=True)
class CommitStep:
    """Put what a step produced into the history, with the tool calls that leave right after."""

    fence: Fence
    messages: tuple[NewMessage, ...]
    dispatches: tuple[Dispatch, ...] = ()


@dataclass(frozen=True, slots=True)
class FinishTurn:
    """Put the last messages of a turn into the history and come to rest."""

    fence: Fence
    messages: tuple[NewMessage, ...]


@dataclass(frozen=True, slots=True)
class FailTurn:
    """End the turn with an error that its readers see."""

    fence: Fence
    error: TurnError


Command = SendMessage | CommitStep | FinishTurn | FailTurn
