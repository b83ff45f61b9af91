"""Which limit binds, over which period, and when it is reached."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.content.domain.messages import ErrorKind
from chatd.spend.domain.limits import (
    EVERYONE,
    LimitPeriod,
    PeriodSpan,
    SpendLimit,
    SpendStatus,
    Subject,
    SubjectKind,
    binding_limit,
    depends_on_groups,
    dollars,
    limit_error,
    span_of,
)

DAY, WEEK, MONTH = LimitPeriod
MINE = SpendLimit(Subject(SubjectKind.USER, "ann"), 5, MONTH)
SMALL = SpendLimit(Subject(SubjectKind.GROUP, "g1"), 100, MONTH)
LARGE = SpendLimit(Subject(SubjectKind.GROUP, "g2"), 200, MONTH)
DAILY = SpendLimit(Subject(SubjectKind.GROUP, "g3"), 10, DAY)
ALL = SpendLimit(EVERYONE, 1, MONTH)


@pytest.mark.parametrize(
    ("limits", "groups", "bound"),
    [
        ((), (), None),
        ((ALL,), (), ALL),
        ((ALL, MINE), (), MINE),
        ((ALL, SMALL), (), ALL),
        ((ALL, SMALL), ("g1",), SMALL),
        ((ALL, SMALL, LARGE), ("g1", "g2"), LARGE),
        ((ALL, SMALL, LARGE, MINE), ("g1", "g2"), MINE),
        ((SMALL,), ("g2",), None),
        ((LARGE, DAILY), ("g2", "g3"), DAILY),
        ((SpendLimit(Subject(SubjectKind.USER, "bob"), 5, MONTH),), (), None),
    ],
    ids=[
        "none",
        "everyone's",
        "one's own before everyone's",
        "another group's binds nobody else",
        "a group's before everyone's",
        "the highest of several groups",
        "one's own, though groups allow more",
        "not in the group",
        "ten a day is more than two hundred a month",
        "somebody else's",
    ],
)
def test_the_nearest_limit_binds(
    limits: tuple[SpendLimit, ...], groups: tuple[str, ...], bound: SpendLimit | None
) -> None:
    by_subject = {limit.subject: limit for limit in limits}
    assert binding_limit(by_subject, "ann", groups) == bound
    assert depends_on_groups(by_subject) == any(
        limit.subject.kind is SubjectKind.GROUP for limit in limits
    )


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "now", "start", "end"),
    [
        (DAY, "2026-03-01T00:00:00", "2026-03-01", "2026-03-02"),
        (DAY, "2026-02-28T23:59:59.999999", "2026-02-28", "2026-03-01"),
        (WEEK, "2026-03-02T00:00:00", "2026-03-02", "2026-03-09"),
        (WEEK, "2026-03-01T23:59:59.999999", "2026-02-23", "2026-03-02"),
        (WEEK, "2026-01-01T12:00:00", "2025-12-29", "2026-01-05"),
        (MONTH, "2026-12-31T23:59:59.999999", "2026-12-01", "2027-01-01"),
        (MONTH, "2028-02-29T12:00:00", "2028-02-01", "2028-03-01"),
        (MONTH, "2026-01-01T00:00:00", "2026-01-01", "2026-02-01"),
    ],
)
def test_periods_begin_and_end_at_midnight_in_utc(
    period: LimitPeriod, now: str, start: str, end: str
) -> None:
    assert span_of(period, at(now)) == PeriodSpan(at(start), at(end))


def test_a_period_is_utc_wherever_the_clock_is() -> None:
    east = timezone(timedelta(hours=9))
    morning = datetime(2026, 3, 2, 8, 0, tzinfo=east)
    assert span_of(DAY, morning) == PeriodSpan(at("2026-03-01"), at("2026-03-02"))


@given(
    st.sampled_from(LimitPeriod),
    st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1)),
)
def test_periods_follow_each_other_without_a_gap(period: LimitPeriod, moment: datetime) -> None:
    now = moment.replace(tzinfo=UTC)
    span = span_of(period, now)
    assert span.start <= now < span.end
    assert span_of(period, span.start) == span
    assert span_of(period, span.end).start == span.end
    assert span_of(period, span.end - timedelta(microseconds=1)) == span


@pytest.mark.parametrize(
    ("limit", "spent", "is_reached"),
    [(MINE, 4, False), (MINE, 5, True), (MINE, 6, True), (None, 10**12, False)],
    ids=["below", "at", "over", "no limit"],
)
def test_a_limit_is_reached_at_it(limit: SpendLimit | None, spent: int, is_reached: bool) -> None:
    assert SpendStatus(limit, spent, at("2026-02-01")).is_reached == is_reached


def test_the_error_says_how_much_and_until_when() -> None:
    error = limit_error(SpendStatus(MINE, 7, at("2026-02-01")))
    assert (error.kind, error.is_retryable) == (ErrorKind.USAGE_LIMIT, False)
    assert "US$0.000005" in error.message
    assert "2026-02-01 00:00 UTC" in error.message


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "US$0.00"), (1, "US$0.000001"), (1_500_000, "US$1.50"), (12_345_678, "US$12.345678")],
)
def test_amounts_lose_no_digit(micros: int, text: str) -> None:
    assert dollars(micros) == text
