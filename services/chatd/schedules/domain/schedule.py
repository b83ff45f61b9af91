"""A schedule and its runs, as values."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from chatd.content.domain.messages import ChatMode
from chatd.models.domain.profile import ReasoningEffort
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import Owner
from chatd.schedules.domain.cron import Cron

SCHEDULES_MAX: Final = 100
RUNS_KEPT: Final = 50
#: How often a schedule may make a new chat.
NEW_CHATS_EVERY: Final = timedelta(minutes=5)


class TooManySchedules(ChatError):
    """The user has as many schedules as may be."""

    def __init__(self, schedules_max: int) -> None:
        super().__init__(f"there are {schedules_max} schedules already; delete one first")
        self.schedules_max = schedules_max


class ScheduleEnded(ChatError):
    """The schedule has no more runs."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(f"schedule {schedule_id} has ended; make another one")
        self.schedule_id = schedule_id


class MissedRuns(StrEnum):
    """What happens with runs whose time passed while nothing could run them."""

    SKIP = "skip"
    RUN_ONCE = "run_once"


class ScheduleState(StrEnum):
    """Whether a schedule runs."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class RunOutcome(StrEnum):
    """How a run went."""

    SENDING = "sending"
    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    MISSED = "missed"
    CHAT_DELETED = "chat_deleted"


@dataclass(frozen=True, slots=True)
class Timing:
    """When a schedule runs: once at a time, or by a cron expression in a time zone."""

    at: datetime | None = None
    cron: str = ""
    time_zone: str = ""

    def next_after(self, after: datetime) -> datetime | None:
        """Return the first time after an instant; None if there is none."""
        if self.at is not None:
            return self.at if self.at > after else None
        zone = ZoneInfo(self.time_zone) if self.time_zone else UTC
        return Cron.parse(self.cron).next_after(after, zone)


@dataclass(frozen=True, slots=True)
class Task:
    """What a run sends.

    Attributes:
        chat_id: The chat that gets it; empty for a new chat for each run.
        mode: The mode of new chats.
        workspace_id: The workspace of new chats; empty for none yet.
        is_unattended: Whether new chats refuse what they would ask a person.
    """

    text: str
    chat_id: str = ""
    model_id: str = ""
    reasoning_effort: ReasoningEffort = ReasoningEffort.DEFAULT
    mode: ChatMode = ChatMode.ORDINARY
    workspace_id: str = ""
    is_unattended: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        planned_at: When it was due, which identifies it within its schedule.
        begun_at: When it was begun or recorded.
        chat_id: The chat that got the message; empty if none did.
        error: Why it failed.
    """

    planned_at: datetime
    begun_at: datetime
    outcome: RunOutcome
    chat_id: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule of a user.

    Attributes:
        owner: The user, with their role when it was made.
        runs_max: How many runs it has at most; 0 for no limit.
        pause_reason: Why it was paused, if its owner did not do it.
        next_run_at: When it runs next; None only if it has ended.
        failures_count: How many runs failed one after the other, up to the last one.
        last_run: The newest run.
    """

    id: str
    owner: Owner
    name: str
    timing: Timing
    task: Task
    missed_runs: MissedRuns
    ends_at: datetime | None
    runs_max: int
    state: ScheduleState
    next_run_at: datetime | None
    created_at: datetime
    pause_reason: str = ""
    runs_count: int = 0
    failures_count: int = 0
    last_run: Run | None = None
    version: int = 1
