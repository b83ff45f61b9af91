"""What an edit changes about a schedule."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import Owner, OwnerId
from chatd.schedules.domain.schedule import (
    MissedRuns,
    Schedule,
    ScheduleState,
    Task,
    Timing,
)
from chatd.schedules.rpc.convert import edited_schedule
from parley.api.chat.v1 import schedule_pb2
from parley.cli.chats.schedule import edit_of

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = Schedule(
    id="00000000-0000-0000-0000-00000000005c",
    owner=Owner(OwnerId("a"), "member"),
    name="",
    timing=Timing(cron="0 * * * *"),
    task=Task("Look."),
    missed_runs=MissedRuns.SKIP,
    ends_at=None,
    runs_max=0,
    state=ScheduleState.ACTIVE,
    next_run_at=NOON,
    created_at=NOON - HOUR,
    runs_count=2,
)


def edit(before: Schedule, **given: object) -> Schedule:
    message = schedule_pb2.Schedule()
    for name, value in given.items():
        if isinstance(value, datetime):
            getattr(message, name).FromDatetime(value)
        elif value is not None:
            setattr(message, name, value)
    return edited_schedule(before, message, frozenset(given), NOON)


def test_an_edit_keeps_what_is_due_and_revives_what_has_ended() -> None:
    renamed = edit(HOURLY, text="Listen.", name="ears")
    assert renamed == replace(HOURLY, task=Task("Listen."), name="ears")
    moved = edit(HOURLY, cron="30 * * * *")
    assert moved.next_run_at == NOON + HOUR / 2
    ended = replace(HOURLY, state=ScheduleState.ENDED, next_run_at=None, runs_max=2)
    again = edit(ended, runs_max=3)
    assert (again.state, again.next_run_at) == (ScheduleState.ACTIVE, NOON + HOUR)
    halted = replace(HOURLY, state=ScheduleState.PAUSED, pause_reason="No key.")
    assert edit(halted, text="Listen.").state is ScheduleState.PAUSED


def test_one_kind_of_time_takes_the_place_of_the_other() -> None:
    zoned = replace(HOURLY, timing=Timing(cron="0 * * * *", time_zone="Europe/Berlin"))
    once = edit(zoned, at=NOON + HOUR)
    assert once.timing == Timing(at=NOON + HOUR)
    assert edit(once, cron="0 8 * * *").timing == Timing(cron="0 8 * * *")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"text": " "}, "schedule.text"),
        ({"cron": "99 * * * *"}, "schedule.cron"),
        ({"cron": None}, "schedule.at"),
        ({"runs_max": 2}, "schedule.runs_max"),
        ({"ends_at": NOON - HOUR}, "schedule.ends_at"),
        ({"at": NOON - HOUR}, "schedule.at"),
    ],
)
def test_an_edit_that_leaves_no_run_or_is_invalid_is_refused(
    given: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        edit(HOURLY, **given)
    assert refused.value.field == field


def test_an_empty_option_removes_what_may_be_absent() -> None:
    given = {"text": None, "chat_id": "", "name": "", "at": "2026-12-24T18:00Z", "runs_max": 0}
    assert edit_of(given) == {
        "chat_id": None,
        "name": "",
        "at": "2026-12-24T18:00:00Z",
        "runs_max": 0,
    }


def test_all_that_is_wrong_with_a_schedule_is_told_at_once() -> None:
    wrong: dict[str, object] = {"text": "", "cron": "99 * * * *", "time_zone": "Mars/Base"}
    with pytest.raises(InvalidRequest) as refused:
        edit(HOURLY, **wrong, chat_id=HOURLY.id, unattended=True)
    assert [field for field, _ in refused.value.faults] == [
        "schedule.text",
        "schedule.unattended",
        "schedule.cron",
        "schedule.time_zone",
    ]
    with pytest.raises(InvalidRequest) as refused:
        edit(HOURLY, at=NOON - HOUR, time_zone="Europe/Berlin")
    assert [field for field, _ in refused.value.faults] == ["schedule.time_zone", "schedule.at"]
