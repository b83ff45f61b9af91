"""Cron expressions of five fields, and the times at which they match in a time zone.

A time that the clock skips in spring matches as much later as the clock is set forward. A time that
the clock repeats in autumn matches once, the first time; an expression for all hours matches the
instants that pass, so that it has no match in the skipped hour and two in the repeated one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

FIELDS: Final = ("minute", "hour", "day of month", "month", "day of week")
BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
HOURS: Final = frozenset(range(24))
DAY_MINUTES: Final = 24 * 60
#: February 29 can be eight years away.
DAYS_MAX: Final = 366 * 9


class CronInvalid(Exception):
    """The text is not a cron expression; the message says why."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression.

    Attributes:
        weekdays: From 0 for Sunday to 6.
        is_any_day: Whether the day of month begins with `*`.
        is_any_weekday: Whether the day of week begins with `*`.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_any_day: bool
    is_any_weekday: bool

    @classmethod
    def parse(cls, text: str) -> "Cron":
        """Return the expression.

        Raises:
            CronInvalid: It is not one.
        """
        words = text.lower().split()
        if len(words) != len(FIELDS):
            raise CronInvalid(f"needs five fields: {', '.join(FIELDS)}; it has {len(words)}")
        minutes, hours, days, months, weekdays = (
            _values(word, index) for index, word in enumerate(words)
        )
        return cls(
            minutes,
            hours,
            days,
            months,
            frozenset(weekday % 7 for weekday in weekdays),
            words[2].startswith("*"),
            words[4].startswith("*"),
        )

    def has_day(self, day: date) -> bool:
        """Return whether it matches on a day: if both kinds of day are limited, either suffices."""
        if day.month not in self.months:
            return False
        is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.is_any_day or self.is_any_weekday:
            return is_day and is_weekday
        return is_day or is_weekday

    def shortest_gap(self) -> timedelta:
        """Return the time between the two matches that are closest, on days one after the other."""
        times = sorted(hour * 60 + minute for hour in self.hours for minute in self.minutes)
        following = [*times[1:], times[0] + DAY_MINUTES]
        return timedelta(minutes=min(b - a for a, b in zip(times, following, strict=True)))

    def next_after(self, after: datetime, zone: tzinfo) -> datetime | None:
        """Return the first match after an instant, in UTC; None if there is none in nine years."""
        after = after.astimezone(UTC)
        # A match of the day before can be moved past midnight by a change of the clock.
        first = after.astimezone(zone).date() - timedelta(days=1)
        for offset in range(DAYS_MAX):
            day = first + timedelta(days=offset)
            if self.has_day(day):
                later = [each for each in self._instants(day, zone) if each > after]
                if later:
                    return min(later)
        return None

    def _instants(self, day: date, zone: tzinfo) -> Iterator[datetime]:
        is_every_hour = self.hours == HOURS
        for hour in self.hours:
            for minute in self.minutes:
                local = datetime.combine(day, time(hour, minute), zone)
                first = local.astimezone(UTC)
                is_skipped = first.astimezone(zone).replace(tzinfo=None) != local.replace(
                    tzinfo=None
                )
                if not is_skipped or not is_every_hour:
                    yield first
                second = local.replace(fold=1).astimezone(UTC)
                if is_every_hour and not is_skipped and second != first:
                    yield second


def _values(word: str, index: int) -> frozenset[int]:
    """Return the values of a field.

    Raises:
        CronInvalid: It is no list of values, ranges and steps.
    """
    values: set[int] = set()
    for item in word.split(","):
        span, slash, step = item.partition("/")
        first, last = _span(span, index)
        if slash and "-" not in span and span != "*":
            raise CronInvalid(f"{FIELDS[index]}: a step needs * or a range before it, not {item}")
        every = _number(step, index) if slash else 1
        if every < 1:
            raise CronInvalid(f"{FIELDS[index]}: a step is at least 1, not {item}")
        values.update(range(first, last + 1, every))
    return frozenset(values)


def _span(span: str, index: int) -> tuple[int, int]:
    low, high = BOUNDS[index]
    if span == "*":
        return low, high
    begin, dash, end = span.partition("-")
    first = _number(begin, index)
    last = _number(end, index) if dash else first
    if not low <= first <= last <= high:
        raise CronInvalid(f"{FIELDS[index]}: {span} is not within {low}-{high}")
    return first, last


def _number(text: str, index: int) -> int:
    if FIELDS[index] == "month" and text in MONTHS:
        return MONTHS.index(text) + 1
    if FIELDS[index] == "day of week" and text in WEEKDAYS:
        return WEEKDAYS.index(text)
    if not text.isascii() or not text.isdigit() or len(text) > 2:
        raise CronInvalid(f"{FIELDS[index]}: {text[:20] or 'nothing'} is not a number")
    return int(text)
