"""What is due of a schedule, and what a run changes about it.

Every time of a run gives one request id. Sending is repeated under this id until it is recorded, so
that a process that ends between sending and recording sends nothing twice.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from chatd.schedules.domain.schedule import (
    MissedRuns,
    Schedule,
    ScheduleEnded,
    ScheduleState,
)

#: A run that is later than this was missed.
LATE: Final = timedelta(minutes=5)
#: How long sending is tried while something that it needs is away.
TRY_FOR: Final = timedelta(minutes=15)
#: Sending is repeated only as long as its request id is remembered for certain.
REPEAT_FOR: Final = timedelta(hours=12)
FAILURES_MAX: Final = 3

SENT_UNKNOWN: Final = "It was cut off while sending, and whether it was sent is not known."
DEFECT: Final = "It failed for a reason that only an administrator can see; ask one of them."


class NoRunLeft(Exception):
    """An edited schedule would have no more runs.

    Attributes:
        field: The field that is wrong.
        problem: What is wrong with it.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class Due(StrEnum):
    """What to do about a run that is due."""

    SEND = "send"
    MISS = "miss"
    GIVE_UP = "give_up"


def request_id(schedule: Schedule, planned_at: datetime) -> str:
    """Return the request id of a run, the same in every process."""
    return f"schedule-{schedule.id}-{planned_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def due(schedule: Schedule, planned_at: datetime, begun_at: datetime | None, now: datetime) -> Due:
    """Return what to do about a run.

    Args:
        schedule: The schedule.
        planned_at: When it was due.
        begun_at: When a process began to send it; None if none did.
        now: The current time.
    """
    if begun_at is not None:
        return Due.SEND if now - begun_at <= REPEAT_FOR else Due.GIVE_UP
    if now - planned_at > LATE and schedule.missed_runs is MissedRuns.SKIP:
        return Due.MISS
    if schedule.ends_at is not None and now - schedule.ends_at > LATE:
        return Due.MISS
    return Due.SEND


def first_run_at(schedule: Schedule, now: datetime) -> datetime | None:
    """Return when a schedule runs next if its runs until now are over; None if never."""
    if schedule.runs_max and schedule.runs_count >= schedule.runs_max:
        return None
    found = schedule.timing.next_after(now)
    if found is None or (schedule.ends_at is not None and found > schedule.ends_at):
        return None
    return found


def after_sending(schedule: Schedule, now: datetime) -> Schedule:
    """Return the schedule after a run was sent."""
    return _advanced(replace(schedule, runs_count=schedule.runs_count + 1), now)


def after_refusal(schedule: Schedule, error: str, now: datetime, *, is_lasting: bool) -> Schedule:
    """Return the schedule after the message of a run was refused."""
    counted = replace(schedule, runs_count=schedule.runs_count + 1)
    return after_failure(_advanced(counted, now), error, is_lasting=is_lasting)


def after_miss(schedule: Schedule, now: datetime) -> Schedule:
    """Return the schedule after a run was missed."""
    return _advanced(schedule, now)


def after_failure(schedule: Schedule, error: str, *, is_lasting: bool = False) -> Schedule:
    """Return the schedule after a run failed; it is paused after some failures in a row."""
    failures = schedule.failures_count + 1
    failed = replace(schedule, failures_count=failures)
    is_over = is_lasting or failures >= FAILURES_MAX
    if schedule.state is not ScheduleState.ACTIVE or not is_over:
        return failed
    reason = error if is_lasting else f"{failures} runs failed one after the other: {error}"
    return replace(failed, state=ScheduleState.PAUSED, pause_reason=reason)


def after_completion(schedule: Schedule) -> Schedule:
    """Return the schedule after the turn of a run ended well."""
    return replace(schedule, failures_count=0)


def edited(before: Schedule, given: Schedule, now: datetime) -> Schedule:
    """Return a schedule with another definition, which has a run to come by itself.

    A run that is due stays due unless its time changes. One that has ended runs again; one that is
    paused stays so.

    Raises:
        NoRunLeft: It would have no more runs.
    """
    is_same = given.timing == before.timing and before.next_run_at is not None
    changed = replace(
        before,
        name=given.name,
        timing=given.timing,
        task=given.task,
        missed_runs=given.missed_runs,
        ends_at=given.ends_at,
        runs_max=given.runs_max,
    )
    following = before.next_run_at if is_same else first_run_at(changed, now)
    if given.runs_max and before.runs_count >= given.runs_max:
        raise NoRunLeft("runs_max", f"is not more than the {before.runs_count} runs it had")
    if following is None or (given.ends_at is not None and following > given.ends_at):
        raise NoRunLeft("ends_at", "is before the next run; give a later time")
    is_ended = before.state is ScheduleState.ENDED
    state = ScheduleState.ACTIVE if is_ended else before.state
    return replace(changed, state=state, next_run_at=following)


def paused(schedule: Schedule) -> Schedule:
    """Return the schedule as its owner paused it; one that has ended stays as it is."""
    if schedule.state is not ScheduleState.ACTIVE:
        return schedule
    return replace(schedule, state=ScheduleState.PAUSED)


def resumed(schedule: Schedule, now: datetime) -> Schedule:
    """Return the schedule as its owner resumed it; one that is active stays as it is.

    Raises:
        ScheduleEnded: It has no more runs.
    """
    if schedule.state is ScheduleState.ACTIVE:
        return schedule
    following = first_run_at(schedule, now)
    missed_at = schedule.next_run_at
    is_owed = schedule.missed_runs is MissedRuns.RUN_ONCE and schedule.timing.at is not None
    if following is None and is_owed and schedule.runs_count == 0:
        following = missed_at
    if following is None:
        raise ScheduleEnded(schedule.id)
    return replace(
        schedule,
        state=ScheduleState.ACTIVE,
        pause_reason="",
        failures_count=0,
        next_run_at=following,
    )


def _advanced(schedule: Schedule, now: datetime) -> Schedule:
    """Return the schedule with the time of its next run, or ended."""
    following = first_run_at(schedule, now)
    if following is not None:
        return replace(schedule, next_run_at=following)
    is_active = schedule.state is ScheduleState.ACTIVE
    state = ScheduleState.ENDED if is_active else schedule.state
    return replace(schedule, next_run_at=None, state=state)
