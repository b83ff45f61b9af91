"""When workspaces stop by themselves, and how activity moves that."""

from datetime import timedelta

import pytest

from chatd.workspaces.domain.commands import Report, SetTtl, Use, Warn
from chatd.workspaces.domain.lifetime import bumped, chosen_lifetime, deadlines, is_due
from chatd.workspaces.domain.transitions import decide
from chatd.workspaces.domain.workspace import Lifetime, State, TtlSource
from support.chatd.workspaces.in_memory_workspaces import is_warning_due
from support.chatd.workspaces.workspace_values import HOUR_MS, NOON, workspace

EIGHT = Lifetime(ttl_ms=2 * HOUR_MS, ttl_max_ms=8 * HOUR_MS, bump_ms=HOUR_MS)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def test_a_deadline_is_a_ttl_after_the_start_and_never_after_the_latest() -> None:
    assert deadlines(EIGHT, NOON) == (NOON + 2 * HOUR, NOON + 8 * HOUR)
    assert deadlines(Lifetime(), NOON) == (None, None)
    assert deadlines(Lifetime(ttl_max_ms=HOUR_MS), NOON) == (NOON + HOUR, NOON + HOUR)
    longer = Lifetime(ttl_ms=9 * HOUR_MS, ttl_max_ms=8 * HOUR_MS)
    assert deadlines(longer, NOON)[0] == NOON + 8 * HOUR


@pytest.mark.parametrize(
    ("after", "deadline"),
    [
        (timedelta(), NOON + 2 * HOUR),  # It is further away than activity pushes.
        (HOUR, NOON + 2 * HOUR),
        (HOUR + 2 * MINUTE, NOON + 2 * HOUR),  # Less than a twentieth of a push.
        (HOUR + 3 * MINUTE, NOON + 2 * HOUR + 3 * MINUTE),
        (7 * HOUR + 50 * MINUTE, NOON + 8 * HOUR),  # Never beyond the latest.
    ],
)
def test_activity_pushes_the_deadline_by_an_hour_from_now(
    after: timedelta, deadline: timedelta
) -> None:
    assert bumped(EIGHT, NOON + 2 * HOUR, NOON + 8 * HOUR, NOON + after) == deadline


def test_what_has_no_deadline_gets_none_by_activity() -> None:
    assert bumped(EIGHT, None, None, NOON) is None


def test_a_workspace_that_is_worked_in_lives_until_the_latest_and_then_stops() -> None:
    seen, now, writes = workspace(State.READY), NOON, 0
    while not is_due(seen.deadline_at, now):
        after = decide(seen, Use(), now)
        writes += after is not seen
        seen, now = after, now + timedelta(seconds=30)
    assert now == NOON + 8 * HOUR
    # A tick every 30 s is 960 ticks; few of them are worth a write.
    assert writes < 170


def test_a_workspace_that_nobody_uses_stops_after_its_ttl() -> None:
    seen = workspace(State.READY)
    assert not is_due(seen.deadline_at, NOON + 2 * HOUR - MINUTE)
    assert is_due(seen.deadline_at, NOON + 2 * HOUR)


def test_people_are_warned_once_for_each_deadline() -> None:
    seen, soon = workspace(State.READY), NOON + 2 * HOUR - 5 * MINUTE
    assert not is_warning_due(seen.deadline_at, seen.warned_for, soon - MINUTE)
    assert is_warning_due(seen.deadline_at, seen.warned_for, soon)
    warned = decide(seen, Warn(), soon)
    assert not is_warning_due(warned.deadline_at, warned.warned_for, soon + MINUTE)
    used = decide(warned, Use(), soon + MINUTE)
    assert used.deadline_at == soon + MINUTE + HOUR
    assert is_warning_due(used.deadline_at, used.warned_for, soon + HOUR)


def test_a_report_of_use_counts_from_when_it_was_used() -> None:
    seen = workspace(State.READY)
    used_at = NOON + HOUR + 30 * MINUTE
    told = decide(seen, Report(1, True, used_at=used_at), used_at + 9 * MINUTE)
    assert (told.state, told.deadline_at) == (State.BUSY, used_at + HOUR)
    # Said again, it is no use again.
    assert decide(told, Report(1, True, used_at=used_at), used_at + 19 * MINUTE) is told


def test_processes_alone_do_not_keep_a_workspace() -> None:
    seen = workspace(State.READY)
    busy = decide(seen, Report(1, True), NOON + HOUR)
    assert (busy.state, busy.deadline_at) == (State.BUSY, seen.deadline_at)


def test_a_new_ttl_counts_from_the_start() -> None:
    assert decide(workspace(State.READY), SetTtl(3 * HOUR_MS), NOON + HOUR).deadline_at == (
        NOON + 3 * HOUR
    )
    assert decide(workspace(State.READY), SetTtl(0), NOON + HOUR).deadline_at == NOON + 8 * HOUR


@pytest.mark.parametrize(
    ("asked", "installation", "template", "most", "chosen"),
    [
        (None, 0, 2, 0, 2),
        (None, 3, 2, 0, 3),
        (1, 3, 2, 0, 1),
        (0, 3, 2, 0, 0),
        (0, 3, 2, 8, 8),
        (9, 3, 2, 8, 8),
        (None, 9, 2, 8, 8),
        (None, 0, 0, 8, 8),
    ],
)
def test_the_ttl_is_what_was_asked_for_else_the_installations_else_the_templates(
    asked: int | None, installation: int, template: int, most: int, chosen: int
) -> None:
    of_template = Lifetime(ttl_ms=template, ttl_max_ms=most)
    lifetime = chosen_lifetime(of_template, asked_ms=asked, installation_ms=installation)
    assert lifetime.ttl_ms == chosen


@pytest.mark.parametrize(
    ("asked", "installation", "most", "is_fixed", "source"),
    [
        (None, 0, 0, False, TtlSource.TEMPLATE),
        (None, 3, 0, False, TtlSource.INSTALLATION),
        (1, 3, 0, False, TtlSource.REQUESTED),
        (9, 3, 8, False, TtlSource.TEMPLATE),
        (None, 3, 0, True, TtlSource.TEMPLATE),
    ],
)
def test_a_workspace_knows_where_its_lifetime_comes_from(
    asked: int | None, installation: int, most: int, is_fixed: bool, source: TtlSource
) -> None:
    of_template = Lifetime(ttl_ms=2, ttl_max_ms=most, is_ttl_fixed=is_fixed)
    lifetime = chosen_lifetime(of_template, asked_ms=asked, installation_ms=installation)
    assert lifetime.source is source
    assert lifetime.ttl_ms == 2 or not is_fixed
