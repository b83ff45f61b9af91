"""A race: one task, given to several models, each in its own chat and fork of a workspace.

A race is a root chat that no model answers in, and its candidates are its agents. So it is
archived, deleted, shared and billed like every chat with agents, and a candidate's fork is merged
like that of every agent.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from chatd.content.domain.messages import CUT, FinishReason, MessageOrigin
from chatd.content.domain.parts import HookAddition
from chatd.primitives.domain.ids import ChatId, Owner

OUTPUT_BYTES_MAX: Final = 16 * 1024


class CandidateStatus(StrEnum):
    """Where a candidate is."""

    STARTING = "starting"  # Its fork is being made, or the start was interrupted.
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check.

    Attributes:
        exit_code: None if the command did not end by itself.
        output: What it printed, or why it did not run.
        version: The version of the candidate's history that was checked.
    """

    exit_code: int | None
    output: str
    version: int

    @property
    def is_passed(self) -> bool:
        """Whether the command succeeded."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model in a race.

    Attributes:
        position: Its place, from 1.
        chat_id: Its chat, which is also the id of its fork.
        model: Its model as the race was started with it.
        owner_epoch: The epoch of its execution; 0 before it was started.
        version: The version of its history.
        check: The result of its check; None if it was not checked since it ended.
        finish_reason: Why its last answer ended; interrupted also if it rests without one.
    """

    position: int
    chat_id: ChatId
    model: str
    model_id: str
    status: CandidateStatus = CandidateStatus.STARTING
    answer: str = ""
    error: str = ""
    duration: timedelta = timedelta()
    cost_micros: int = 0
    owner_epoch: int = 0
    version: int = 0
    check: CheckResult | None = None
    finish_reason: FinishReason | None = None

    @property
    def cut(self) -> FinishReason | None:
        """Why its answer is not complete; None if it is, or while it works."""
        return self.finish_reason if self.is_ended and self.finish_reason in CUT else None

    @property
    def is_ended(self) -> bool:
        """Whether it has ended its work, successfully or not."""
        return self.status in (CandidateStatus.DONE, CandidateStatus.FAILED)


@dataclass(frozen=True, slots=True)
class Race:
    """A race.

    Attributes:
        id: The id of its chat.
        workspace_id: The workspace that was chosen for it; empty for one of its own.
        check_command: The command that checks candidates; empty for none.
        applied_chat_id: The candidate whose changes were applied last; empty if none were.
    """

    id: ChatId
    title: str
    workspace_id: str
    check_command: str
    created_at: datetime
    cancelled_at: datetime | None = None
    applied_chat_id: str = ""
    candidates: tuple[Candidate, ...] = ()

    def unchecked(self) -> tuple[Candidate, ...]:
        """Return the candidates that have ended and whose work was not checked since."""
        if not self.check_command:
            return ()
        return tuple(each for each in self.candidates if each.is_ended and each.check is None)


@dataclass(frozen=True, slots=True)
class NewRace:
    """A race to start.

    Attributes:
        id: Derived from the request, so that a repeated one finds its race.
        candidates: Its candidates before their start.
        added: What hooks add to the prompt.
    """

    id: ChatId
    owner: Owner
    prompt: str
    title: str
    candidates: tuple[Candidate, ...]
    check_command: str = ""
    workspace_id: str = ""
    owner_group_ids: tuple[str, ...] = ()
    added: tuple[HookAddition, ...] = ()
    origin: MessageOrigin = MessageOrigin.PERSON  # Of the prompt.
