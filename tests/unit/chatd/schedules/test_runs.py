"""What is due of a schedule, and what runs change about it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from chatd.primitives.domain.ids import Owner, OwnerId
from chatd.schedules.domain.runs import (
    FAILURES_MAX,
    LATE,
    REPEAT_FOR,
    Due,
    after_completion,
    after_failure,
    after_miss,
    after_refusal,
    after_sending,
    due,
    first_run_at,
    paused,
    request_id,
    resumed,
)
from chatd.schedules.domain.schedule import (
    MissedRuns,
    Schedule,
    ScheduleEnded,
    ScheduleState,
    Task,
    Timing,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
HOURLY = Schedule(
    id="5c",
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
)
ONCE = replace(HOURLY, timing=Timing(at=NOON))


def test_a_run_that_is_due_is_sent_and_a_late_one_as_the_schedule_says() -> None:
    assert due(HOURLY, NOON, None, NOON + LATE) is Due.SEND
    assert due(HOURLY, NOON, None, NOON + LATE + SECOND) is Due.MISS
    caring = replace(HOURLY, missed_runs=MissedRuns.RUN_ONCE)
    assert due(caring, NOON, None, NOON + timedelta(days=3)) is Due.SEND
    ended = replace(caring, ends_at=NOON + HOUR)
    assert due(ended, NOON, None, NOON + timedelta(days=3)) is Due.MISS


def test_a_schedule_may_end_at_the_last_time_there_is() -> None:
    endless = replace(HOURLY, ends_at=datetime.max.replace(tzinfo=UTC))
    assert due(endless, NOON, None, NOON) is Due.SEND


def test_a_run_that_was_begun_is_sent_again_while_its_request_id_is_remembered() -> None:
    assert due(HOURLY, NOON, NOON, NOON + REPEAT_FOR) is Due.SEND
    assert due(HOURLY, NOON, NOON, NOON + REPEAT_FOR + SECOND) is Due.GIVE_UP


def test_the_request_id_names_the_schedule_and_the_planned_time() -> None:
    assert request_id(HOURLY, NOON) == "schedule-5c-20260501T120000Z"
    assert request_id(HOURLY, NOON + HOUR) != request_id(HOURLY, NOON)


def test_many_missed_runs_are_followed_by_the_next_one_to_come() -> None:
    late = NOON + 5 * HOUR + SECOND
    assert after_miss(HOURLY, late).next_run_at == NOON + 6 * HOUR
    sent = after_sending(HOURLY, late)
    assert (sent.next_run_at, sent.runs_count) == (NOON + 6 * HOUR, 1)


def test_a_schedule_ends_after_its_time_its_end_or_its_number_of_runs() -> None:
    for schedule in (ONCE, replace(HOURLY, ends_at=NOON), replace(HOURLY, runs_max=1)):
        after = after_sending(schedule, NOON + SECOND)
        assert (after.state, after.next_run_at) == (ScheduleState.ENDED, None)
    assert first_run_at(replace(HOURLY, runs_max=2), NOON) == NOON + HOUR


def test_failures_in_a_row_pause_it_with_the_reason_and_a_success_counts_anew() -> None:
    schedule = HOURLY
    for _ in range(FAILURES_MAX - 1):
        schedule = after_refusal(schedule, "No money.", NOON, is_lasting=False)
    assert schedule.state is ScheduleState.ACTIVE
    assert after_completion(schedule).failures_count == 0
    failed = after_failure(schedule, "No money.")
    assert failed.state is ScheduleState.PAUSED
    assert failed.pause_reason == "3 runs failed one after the other: No money."


def test_a_lasting_refusal_pauses_it_at_once() -> None:
    refused = after_refusal(HOURLY, "No chat.", NOON, is_lasting=True)
    assert (refused.state, refused.pause_reason) == (ScheduleState.PAUSED, "No chat.")


def test_a_paused_schedule_is_resumed_with_its_next_time_to_come() -> None:
    halted = paused(replace(HOURLY, failures_count=2))
    assert halted.state is ScheduleState.PAUSED
    again = resumed(halted, NOON + 9 * HOUR)
    assert (again.state, again.failures_count) == (ScheduleState.ACTIVE, 0)
    assert again.next_run_at == NOON + 10 * HOUR
    assert resumed(again, NOON) == again


def test_one_whose_only_time_passed_is_resumed_if_missed_runs_are_made_up_for() -> None:
    owed = paused(replace(ONCE, missed_runs=MissedRuns.RUN_ONCE))
    assert resumed(owed, NOON + HOUR).next_run_at == NOON
    with pytest.raises(ScheduleEnded):
        resumed(paused(ONCE), NOON + HOUR)


def test_one_that_has_ended_is_neither_paused_nor_resumed() -> None:
    ended = after_sending(ONCE, NOON + SECOND)
    assert paused(ended) == ended
    with pytest.raises(ScheduleEnded):
        resumed(ended, NOON + HOUR)


def test_what_a_run_changes_leaves_a_pause_of_the_owner_alone() -> None:
    assert after_sending(paused(ONCE), NOON + SECOND).state is ScheduleState.PAUSED
    assert after_failure(paused(HOURLY), "No.", is_lasting=True).pause_reason == ""
