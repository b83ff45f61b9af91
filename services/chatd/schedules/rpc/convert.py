"""Conversion of schedules and runs between protos and values."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from chatd.chats.rpc.convert import MODE
from chatd.content.domain.messages import ChatMode
from chatd.models.rpc.convert import EFFORT, EFFORT_OF
from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import Owner
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.times import optional_time, time_to_proto
from chatd.schedules.domain.cron import Cron, CronInvalid
from chatd.schedules.domain.runs import NoRunLeft, edited, first_run_at
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
        InvalidRequest: Its times or options are invalid.
    """
    timing, task = _timing(given), _task(given)
    if (
        timing.cron
        and not task.chat_id
        and Cron.parse(timing.cron).shortest_gap() < NEW_CHATS_EVERY
    ):
        raise InvalidRequest("schedule.cron", TOO_OFTEN)
    ends_at = _time(given.ends_at) if given.HasField("ends_at") else None
    schedule = Schedule(
        id=schedule_id,
        owner=owner,
        name=fields.storable(given.name.strip(), "schedule.name"),
        timing=timing,
        task=task,
        missed_runs=MISSED_OF[given.missed_runs],
        ends_at=ends_at,
        runs_max=given.runs_max,
        state=ScheduleState.ACTIVE,
        next_run_at=timing.next_after(now),
        created_at=now,
    )
    if schedule.next_run_at is None:
        if timing.at is not None:
            raise InvalidRequest("schedule.at", "is in the past; give a time to come")
        raise InvalidRequest("schedule.cron", "never matches; give days that its months have")
    if first_run_at(schedule, now) is None:
        raise InvalidRequest("schedule.ends_at", "is before the first run; give a later time")
    return schedule


def edited_schedule(
    stored: Schedule, given: schedule_pb2.Schedule, changed: frozenset[str], now: datetime
) -> Schedule:
    """Return a stored schedule with the changed fields taken from a request.

    Raises:
        InvalidRequest: Its times or options are invalid, or it would have no more runs.
    """
    kept = set(FIELDS) - changed
    if given.cron and "cron" in changed:
        kept.discard("at")
    if given.HasField("at") and "at" in changed:
        kept -= {"cron", "time_zone"}
    whole = schedule_pb2.Schedule()
    FieldMask(paths=kept).MergeMessage(schedule_to_proto(stored), whole)
    FieldMask(paths=changed).MergeMessage(given, whole)
    try:
        return edited(stored, new_schedule(whole, stored.id, stored.owner, now), now)
    except NoRunLeft as error:
        raise InvalidRequest(f"schedule.{error.field}", error.problem) from None


def _task(given: schedule_pb2.Schedule) -> Task:
    if not given.text.strip():
        raise InvalidRequest("schedule.text", "is empty; give the message to send")
    task = Task(
        fields.storable(given.text, "schedule.text"),
        fields.optional_uuid(given.chat_id, "schedule.chat_id"),
        fields.storable(given.model_id.strip(), "schedule.model_id"),
        EFFORT_OF[given.reasoning_effort],
        MODE_OF[given.mode],
        fields.optional_uuid(given.workspace_id, "schedule.workspace_id"),
        given.unattended,
    )
    if task.chat_id:
        only_new = {
            "mode": task.mode is not ChatMode.ORDINARY,
            "workspace_id": bool(task.workspace_id),
            "unattended": task.is_unattended,
        }
        for name, is_given in only_new.items():
            if is_given:
                raise InvalidRequest(f"schedule.{name}", "is for new chats; leave out the chat_id")
    return task


def _timing(given: schedule_pb2.Schedule) -> Timing:
    cron, zone = " ".join(given.cron.split()), given.time_zone.strip()
    if given.HasField("at") == bool(cron):
        raise InvalidRequest("schedule.at", "give either at or cron")
    if given.HasField("at"):
        if zone:
            raise InvalidRequest("schedule.time_zone", "is for cron; at has its own offset")
        return Timing(at=_time(given.at))
    try:
        Cron.parse(cron)
    except CronInvalid as fault:
        raise InvalidRequest("schedule.cron", str(fault)) from None
    try:
        ZoneInfo(zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        problem = "is not an IANA time zone such as Europe/Berlin"
        raise InvalidRequest("schedule.time_zone", problem) from None
    return Timing(cron=cron, time_zone=zone)


def _time(given: Timestamp) -> datetime:
    return given.ToDatetime(UTC)
