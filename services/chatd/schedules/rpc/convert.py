"""Conversion of schedules and runs between protos and values."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from chatd.chats.rpc.convert import MODE
from chatd.content.domain.messages import ChatMode
from chatd.models.rpc.convert import EFFORT, EFFORT_OF
from chatd.primitives.domain.errors import InvalidRequest, all_of
from chatd.primitives.domain.ids import Owner
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.times import optional_time, time_to_proto
from chatd.schedules.domain.cron import Cron, CronInvalid
from chatd.schedules.domain.runs import NoRunLeft, edited
from chatd.schedules.domain.schedule import (
    NEW_CHATS_EVERY,
    MissedRuns,
    Run,
    RunOutcome,
    Schedule,
    ScheduleState,
    Task,
    Timing,
)
from parley.api.chat.v1 import schedule_pb2

MISSED = {each: schedule_pb2.MissedRuns.Value(f"MISSED_RUNS_{each.name}") for each in MissedRuns}
MISSED_OF = {
    schedule_pb2.MISSED_RUNS_UNSPECIFIED: MissedRuns.SKIP,
    **{value: each for each, value in MISSED.items()},
}
STATE = {
    each: schedule_pb2.ScheduleState.Value(f"SCHEDULE_STATE_{each.name}") for each in ScheduleState
}
OUTCOME = {
    each: schedule_pb2.ScheduleRunOutcome.Value(f"SCHEDULE_RUN_OUTCOME_{each.name}")
    for each in RunOutcome
}
TOO_OFTEN = (
    "makes new chats more often than every 5 minutes; let it run less often, or give a chat_id"
)
#: What its owner may change.
FIELDS = (
    "name",
    "text",
    "chat_id",
    "model_id",
    "reasoning_effort",
    "mode",
    "workspace_id",
    "unattended",
    "at",
    "cron",
    "time_zone",
    "missed_runs",
    "ends_at",
    "runs_max",
)
MODE_OF = {value: mode for mode, value in MODE.items()}


def schedule_to_proto(schedule: Schedule) -> schedule_pb2.Schedule:
    """Return a schedule as its owner sees it."""
    task, timing, last_run = schedule.task, schedule.timing, schedule.last_run
    is_active = schedule.state is ScheduleState.ACTIVE
    return schedule_pb2.Schedule(
        id=schedule.id,
        name=schedule.name,
        text=task.text,
        chat_id=task.chat_id,
        model_id=task.model_id,
        reasoning_effort=EFFORT[task.reasoning_effort],
        mode=MODE[task.mode],
        workspace_id=task.workspace_id,
        unattended=task.is_unattended,
        at=optional_time(timing.at),
        cron=timing.cron,
        time_zone=timing.time_zone,
        missed_runs=MISSED[schedule.missed_runs],
        ends_at=optional_time(schedule.ends_at),
        runs_max=schedule.runs_max,
        state=STATE[schedule.state],
        pause_reason=schedule.pause_reason,
        next_run_at=optional_time(schedule.next_run_at if is_active else None),
        runs_count=schedule.runs_count,
        failures_count=schedule.failures_count,
        last_run=None if last_run is None else run_to_proto(last_run),
        created_at=time_to_proto(schedule.created_at),
        etag=str(schedule.version),
    )


def run_to_proto(run: Run) -> schedule_pb2.ScheduleRun:
    """Return a run as the owner of its schedule sees it."""
    return schedule_pb2.ScheduleRun(
        planned_at=time_to_proto(run.planned_at),
        begun_at=time_to_proto(run.begun_at),
        outcome=OUTCOME[run.outcome],
        chat_id=run.chat_id,
        error=run.error,
    )


def new_schedule(
    given: schedule_pb2.Schedule, schedule_id: str, owner: Owner, now: datetime
) -> Schedule:
    """Return a schedule as a request describes it; ids that it names are not checked yet.

    Raises:
        InvalidRequest: Its times or options are invalid; it has the problems of all of them.
    """
    all_of(_checks(given, now))
    timing = _timing(given)
    return Schedule(
        id=schedule_id,
        owner=owner,
        name=given.name.strip(),
        timing=timing,
        task=_task(given),
        missed_runs=MISSED_OF[given.missed_runs],
        ends_at=_ends_at(given),
        runs_max=given.runs_max,
        state=ScheduleState.ACTIVE,
        next_run_at=timing.next_after(now),
        created_at=now,
    )


def merged_schedule(
    stored: Schedule, given: schedule_pb2.Schedule, changed: frozenset[str]
) -> schedule_pb2.Schedule:
    """Return a stored schedule with the changed fields taken from a request; nothing is checked."""
    kept = set(FIELDS) - changed
    if given.cron and "cron" in changed:
        kept.discard("at")
    if given.HasField("at") and "at" in changed:
        kept -= {"cron", "time_zone"}
    whole = schedule_pb2.Schedule()
    FieldMask(paths=kept).MergeMessage(schedule_to_proto(stored), whole)
    FieldMask(paths=changed).MergeMessage(given, whole)
    return whole


def edited_schedule(
    stored: Schedule, given: schedule_pb2.Schedule, changed: frozenset[str], now: datetime
) -> Schedule:
    """Return a stored schedule with the changed fields taken from a request.

    Raises:
        InvalidRequest: Its times or options are invalid, or it would have no more runs.
    """
    whole = merged_schedule(stored, given, changed)
    try:
        return edited(stored, new_schedule(whole, stored.id, stored.owner, now), now)
    except NoRunLeft as error:
        raise InvalidRequest(f"schedule.{error.field}", error.problem) from None


def _checks(given: schedule_pb2.Schedule, now: datetime) -> Iterator[Callable[[], object]]:
    yield partial(fields.storable, given.name, "schedule.name")
    yield partial(_check_text, given.text)
    yield partial(fields.storable, given.model_id, "schedule.model_id")
    if given.chat_id:
        for name, is_given in (
            ("mode", MODE_OF[given.mode] is not ChatMode.ORDINARY),
            ("workspace_id", bool(given.workspace_id)),
            ("unattended", given.unattended),
        ):
            yield partial(_check_absent, f"schedule.{name}", is_given=is_given)
    yield partial(_check_times, given, now)


def _check_text(text: str) -> None:
    if not fields.storable(text, "schedule.text").strip():
        raise InvalidRequest("schedule.text", "is empty; give the message to send")


def _check_absent(field: str, *, is_given: bool) -> None:
    if is_given:
        raise InvalidRequest(field, "is for new chats; leave out the chat_id")


def _check_times(given: schedule_pb2.Schedule, now: datetime) -> None:
    timing = _timing(given)
    if given.HasField("at") == bool(timing.cron):
        raise InvalidRequest("schedule.at", "give either at or cron")
    if timing.at is None:
        all_of((partial(_check_cron, given, timing.cron), partial(_check_zone, timing.time_zone)))
    all_of((partial(_check_own_offset, given), partial(_check_first_run, given, timing, now)))


def _check_own_offset(given: schedule_pb2.Schedule) -> None:
    if given.HasField("at") and given.time_zone.strip():
        raise InvalidRequest("schedule.time_zone", "is for cron; at has its own offset")


def _check_first_run(given: schedule_pb2.Schedule, timing: Timing, now: datetime) -> None:
    first_at, ends_at = timing.next_after(now), _ends_at(given)
    if first_at is None:
        if timing.at is not None:
            raise InvalidRequest("schedule.at", "is in the past; give a time to come")
        raise InvalidRequest("schedule.cron", "never matches; give days that its months have")
    if ends_at is not None and first_at > ends_at:
        raise InvalidRequest("schedule.ends_at", "is before the first run; give a later time")


def _check_cron(given: schedule_pb2.Schedule, text: str) -> None:
    try:
        cron = Cron.parse(text)
    except CronInvalid as fault:
        raise InvalidRequest("schedule.cron", str(fault)) from None
    if not given.chat_id and cron.shortest_gap() < NEW_CHATS_EVERY:
        raise InvalidRequest("schedule.cron", TOO_OFTEN)


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        problem = "is not an IANA time zone such as Europe/Berlin"
        raise InvalidRequest("schedule.time_zone", problem) from None


def _task(given: schedule_pb2.Schedule) -> Task:
    return Task(
        given.text,
        fields.optional_uuid(given.chat_id, "schedule.chat_id"),
        given.model_id.strip(),
        EFFORT_OF[given.reasoning_effort],
        MODE_OF[given.mode],
        fields.optional_uuid(given.workspace_id, "schedule.workspace_id"),
        given.unattended,
    )


def _timing(given: schedule_pb2.Schedule) -> Timing:
    cron, zone = " ".join(given.cron.split()), given.time_zone.strip()
    if given.HasField("at"):
        return Timing(at=_time(given.at), cron=cron)
    return Timing(cron=cron, time_zone=zone)


def _ends_at(given: schedule_pb2.Schedule) -> datetime | None:
    return _time(given.ends_at) if given.HasField("ends_at") else None


def _time(given: Timestamp) -> datetime:
    return given.ToDatetime(UTC)
