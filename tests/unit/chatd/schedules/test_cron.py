"""The times of cron expressions, also where clocks are set forward and back."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.schedules.domain.cron import Cron, CronInvalid

BERLIN = ZoneInfo("Europe/Berlin")  # Forward on 2026-03-29 at 02:00, back on 2026-10-25 at 03:00.


def times(expression: str, after: str, count: int, zone: ZoneInfo | None = None) -> list[str]:
    """Return the first matches after a time, in UTC."""
    cron, at = Cron.parse(expression), datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = []
    for _ in islice(iter(int, 1), count):
        match = cron.next_after(at, zone or UTC)
        assert match is not None
        found.append(f"{match:%m-%d %H:%M}")
        at = match
    return found


@pytest.mark.parametrize(
    ("expression", "minutes"),
    [
        ("* * * * *", 1),
        ("*/5 * * * *", 5),
        ("0,58 * * * *", 2),
        ("0,58 9 * * *", 58),
        ("0 0 * * *", 24 * 60),
        ("0,59 0,23 * * *", 1),
    ],
)
def test_the_shortest_time_between_two_matches_is_known(expression: str, minutes: int) -> None:
    assert Cron.parse(expression).shortest_gap() == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/20 * * * *", ["01-01 00:20", "01-01 00:40", "01-01 01:00"]),
        ("30 9 * * 1-5", ["01-01 09:30", "01-02 09:30", "01-05 09:30"]),
        ("0 0 1 feb,mar *", ["02-01 00:00", "03-01 00:00", "02-01 00:00"]),
        ("0 12 * * sun", ["01-04 12:00", "01-11 12:00", "01-18 12:00"]),
        ("0 12 * * 7", ["01-04 12:00", "01-11 12:00", "01-18 12:00"]),
        ("5 4-8/2 * * *", ["01-01 04:05", "01-01 06:05", "01-01 08:05"]),
        ("0 0 13 * fri", ["01-02 00:00", "01-09 00:00", "01-13 00:00"]),
        ("0 0 */10 * mon", ["05-11 00:00", "06-01 00:00", "08-31 00:00"]),
        ("0 0 29 2 *", ["02-29 00:00", "02-29 00:00", "02-29 00:00"]),
    ],
)
def test_expressions_match_at_their_times(expression: str, expected: list[str]) -> None:
    assert times(expression, "2026-01-01T00:00", 3) == expected


def test_a_time_that_the_clock_skips_comes_as_much_later() -> None:
    found = times("30 2 * * *", "2026-03-28T00:00", 3, BERLIN)
    assert found == ["03-28 01:30", "03-29 01:30", "03-30 00:30"]  # 03:30 on the day of the change.


def test_a_time_that_the_clock_repeats_comes_once() -> None:
    found = times("30 2 * * *", "2026-10-24T12:00", 2, BERLIN)
    assert found == ["10-25 00:30", "10-26 01:30"]


def test_every_hour_follows_the_hours_that_pass() -> None:
    spring = times("30 * * * *", "2026-03-28T23:45", 3, BERLIN)
    assert spring == ["03-29 00:30", "03-29 01:30", "03-29 02:30"]
    autumn = times("30 * * * *", "2026-10-24T23:45", 4, BERLIN)
    assert autumn == ["10-25 00:30", "10-25 01:30", "10-25 02:30", "10-25 03:30"]


def test_a_day_that_no_month_has_never_comes() -> None:
    assert Cron.parse("0 0 30 2 *").next_after(datetime(2026, 1, 1, tzinfo=UTC), UTC) is None


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("* * * *", "needs five fields"),
        ("@daily", "needs five fields"),
        ("60 * * * *", "minute: 60 is not within 0-59"),
        ("* 24 * * *", "hour: 24 is not within 0-23"),
        ("* * 0 * *", "day of month: 0 is not within 1-31"),
        ("* * * 13 *", "month: 13 is not within 1-12"),
        ("* * * * 8", "day of week: 8 is not within 0-7"),
        ("5-1 * * * *", "minute: 5-1 is not within 0-59"),
        ("*/0 * * * *", "minute: a step is at least 1"),
        ("5/10 * * * *", "minute: a step needs"),
        ("a * * * *", "minute: a is not a number"),
        ("1,,2 * * * *", "minute: nothing is not a number"),
        ("jan * * * *", "minute: jan is not a number"),
    ],
)
def test_other_texts_are_refused_with_the_field(expression: str, problem: str) -> None:
    with pytest.raises(CronInvalid, match=problem):
        Cron.parse(expression)


@given(
    st.integers(0, 59),
    st.integers(0, 23),
    st.datetimes(datetime(2025, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
)
def test_a_daily_time_comes_within_a_day_and_an_hour(
    minute: int, hour: int, after: datetime, zone: str
) -> None:
    match = Cron.parse(f"{minute} {hour} * * *").next_after(after, ZoneInfo(zone))
    assert match is not None
    assert 0 < (match - after).total_seconds() <= 25 * 3600
