"""Spend limits: which limit applies to a user, its period, and when it is reached."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner


class LimitPeriod(StrEnum):
    """A period over which spending is limited, in UTC; weeks begin on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


# Limits of different periods are compared by their amount per day.
DAYS = {LimitPeriod.DAY: 1, LimitPeriod.WEEK: 7, LimitPeriod.MONTH: 30}


class SubjectKind(StrEnum):
    """The kinds of subject that a limit can apply to."""

    USER = "user"
    GROUP = "group"
    EVERYONE = "everyone"


@dataclass(frozen=True, slots=True)
class Subject:
    """A user or a group by id, or everyone, without an id."""

    kind: SubjectKind
    id: str = ""


EVERYONE = Subject(SubjectKind.EVERYONE)


@dataclass(frozen=True, slots=True)
class SpendLimit:
    """The amount a subject may spend in a period, in millionths of a dollar."""

    subject: Subject
    limit_micros: int
    period: LimitPeriod

    @property
    def per_day(self) -> Fraction:
        """Return the amount per day, to compare limits of different periods."""
        return Fraction(self.limit_micros, DAYS[self.period])


Limits = Mapping[Subject, SpendLimit]


@dataclass(frozen=True, slots=True)
class PeriodSpan:
    """A period with dates: from its start, inclusive, to its end, exclusive."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class SpendStatus:
    """The amount spent in the current period, and the limit that applies, if any."""

    limit: SpendLimit | None
    spent_micros: int
    resets_at: datetime

    @property
    def is_reached(self) -> bool:
        """Return whether the limit is reached."""
        return self.limit is not None and self.spent_micros >= self.limit.limit_micros


def span_of(period: LimitPeriod, now: datetime) -> PeriodSpan:
    """Return the period that contains `now`."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case LimitPeriod.DAY:
            return PeriodSpan(today, today + timedelta(days=1))
        case LimitPeriod.WEEK:
            monday = today - timedelta(days=today.weekday())
            return PeriodSpan(monday, monday + timedelta(days=7))
        case LimitPeriod.MONTH:
            first = today.replace(day=1)
            # No month is longer than 31 days or shorter than 28.
            return PeriodSpan(first, (first + timedelta(days=31)).replace(day=1))


def binding_limit(limits: Limits, user_id: str, group_ids: Iterable[str]) -> SpendLimit | None:
    """Return a user's limit: their own, the highest of their groups, or that of everyone."""
    own = limits.get(Subject(SubjectKind.USER, user_id))
    if own is not None:
        return own
    of_groups = (limits.get(Subject(SubjectKind.GROUP, group_id)) for group_id in group_ids)
    found = [limit for limit in of_groups if limit is not None]
    if found:
        return max(found, key=lambda limit: (limit.per_day, limit.subject.id))
    return limits.get(EVERYONE)


def depends_on_groups(limits: Limits) -> bool:
    """Return whether a limit depends on the groups of a user."""
    return any(subject.kind is SubjectKind.GROUP for subject in limits)


def limit_error(spend_status: SpendStatus) -> TurnError:
    """Return the error of a turn that ends because the limit is reached."""
    limit = 0 if spend_status.limit is None else spend_status.limit.limit_micros
    return TurnError(
        f"The spending limit of {dollars(limit)} is reached. Go on after "
        f"{spend_status.resets_at:%Y-%m-%d %H:%M} UTC, or ask an administrator to raise it.",
        ErrorKind.USAGE_LIMIT,
        detail=f"{spend_status.spent_micros} of {limit} micros are spent",
    )


def dollars(micros: int) -> str:
    """Format an amount in dollars without losing digits."""
    whole, rest = divmod(micros, 10**6)
    fraction = f"{rest:06}".rstrip("0").ljust(2, "0")
    return f"US${whole}.{fraction}"


class UsageLimitReached(ChatError):
    """The owner has reached their spend limit until a time."""

    def __init__(
        self, *, spent_micros: int, limit_micros: int, resets_at: datetime, retry_after_s: float
    ) -> None:
        super().__init__(
            f"{dollars(spent_micros)} of {dollars(limit_micros)} are spent; go on after {resets_at}"
        )
        self.spent_micros = spent_micros
        self.limit_micros = limit_micros
        self.resets_at = resets_at
        self.retry_after_s = retry_after_s


class Spending(Protocol):
    """Checks spend limits."""

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        """Return why no model may be called for a chat now, None if one may."""
        ...
