"""Conversion of usage and limits between protos and the domain."""

from collections.abc import Callable
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from chatd.primitives.domain.errors import InvalidRequest, all_of
from chatd.primitives.rpc import fields
from chatd.spend.domain.limits import (
    EVERYONE,
    LimitPeriod,
    SpendLimit,
    SpendStatus,
    Subject,
    SubjectKind,
)
from chatd.spend.domain.usage import UsageRow, UsageSpan, UsageTotals
from parley.api.chat.v1 import usage_pb2

PERIOD = {
    LimitPeriod.DAY: usage_pb2.LIMIT_PERIOD_DAY,
    LimitPeriod.WEEK: usage_pb2.LIMIT_PERIOD_WEEK,
    LimitPeriod.MONTH: usage_pb2.LIMIT_PERIOD_MONTH,
}
PERIOD_OF = {value: period for period, value in PERIOD.items()}
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def totals_to_proto(totals: UsageTotals) -> usage_pb2.UsageTotals:
    """Convert totals to their proto."""
    return usage_pb2.UsageTotals(
        cost_micros=totals.cost_micros,
        priced_calls=totals.priced_calls,
        unpriced_calls=totals.unpriced_calls,
        estimated_calls=totals.estimated_calls,
        fallback_calls=totals.fallback_calls,
        estimated_cost_micros=totals.estimated_cost_micros,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        cache_read_tokens=totals.cache_read_tokens,
        cache_write_tokens=totals.cache_write_tokens,
        model_runtime_ms=totals.model_runtime_ms,
    )


def row_to_proto(row: UsageRow) -> usage_pb2.UsageRow:
    """Convert the totals of one row to their proto."""
    return usage_pb2.UsageRow(
        id=row.id,
        name=row.name,
        totals=totals_to_proto(row.totals),
        provider_display_name=row.provider_name,
    )


def span_from_proto(start: Timestamp | None, end: Timestamp | None, now: datetime) -> UsageSpan:
    """Return a time range; without a start it is unbounded, without an end it ends now.

    Raises:
        InvalidRequest: a time is out of range, or the end is before the start.
    """
    span = UsageSpan(
        BEGINNING if start is None else _moment(start, "start"),
        now if end is None else _moment(end, "end"),
    )
    if span.end < span.start:
        raise InvalidRequest("end", "is before the start")
    return span


def _moment(stamp: Timestamp, field: str) -> datetime:
    try:
        return stamp.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidRequest(field, "is no moment of the years 1 to 9999") from None


def limit_from_proto(limit: usage_pb2.SpendLimit) -> SpendLimit:
    """Return a limit; 0 removes it, and then its period is ignored.

    Raises:
        InvalidRequest: it has no subject, or its period is invalid, or both.
    """
    checks: tuple[Callable[[], object], ...] = (lambda: _subject(limit), lambda: _period(limit))
    all_of(checks)
    return SpendLimit(_subject(limit), limit.limit_micros, _period(limit))


def _period(limit: usage_pb2.SpendLimit) -> LimitPeriod:
    period = PERIOD_OF.get(limit.period)
    if period is None:
        if limit.limit_micros or limit.period != usage_pb2.LIMIT_PERIOD_UNSPECIFIED:
            known = ", ".join(LimitPeriod)
            raise InvalidRequest("limit.period", f"is not known; there are {known}")
        return LimitPeriod.MONTH
    return period


def _subject(limit: usage_pb2.SpendLimit) -> Subject:
    match limit.WhichOneof("subject"):
        case "user_id":
            return Subject(SubjectKind.USER, fields.uuid_of(limit.user_id, "limit.user_id"))
        case "group_id":
            return Subject(SubjectKind.GROUP, fields.uuid_of(limit.group_id, "limit.group_id"))
        case "everyone" if limit.everyone:
            return EVERYONE
        case _:
            raise InvalidRequest("limit.subject", "is missing; give user_id, group_id or everyone")


def limit_to_proto(limit: SpendLimit) -> usage_pb2.SpendLimit:
    """Convert a limit to its proto."""
    sent = usage_pb2.SpendLimit(limit_micros=limit.limit_micros, period=PERIOD[limit.period])
    match limit.subject.kind:
        case SubjectKind.USER:
            sent.user_id = limit.subject.id
        case SubjectKind.GROUP:
            sent.group_id = limit.subject.id
        case SubjectKind.EVERYONE:
            sent.everyone = True
    return sent


def spend_status_to_proto(spend_status: SpendStatus) -> usage_pb2.SpendStatus:
    """Convert a spend status to its proto."""
    sent = usage_pb2.SpendStatus(spent_micros=spend_status.spent_micros)
    sent.resets_at.FromDatetime(spend_status.resets_at)
    if spend_status.limit is not None:
        sent.limit.CopyFrom(limit_to_proto(spend_status.limit))
    return sent
