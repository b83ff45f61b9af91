"""Converts usage and limits to JSON."""

from collections.abc import Iterable

from gateway.api.convert.parts import Json, enum_names, time_of
from gateway.api.inputs.models import LimitPeriod
from parley.api.chat.v1 import usage_pb2, usage_service_pb2

PERIOD = enum_names(usage_pb2.LimitPeriod, "LIMIT_PERIOD_")


def totals_to_json(totals: usage_pb2.UsageTotals) -> Json:
    """Convert totals of model calls; money is in millionths of a US dollar."""
    return {
        "cost_micros": totals.cost_micros,
        "priced_calls": totals.priced_calls,
        "unpriced_calls": totals.unpriced_calls,
        "estimated_calls": totals.estimated_calls,
        "estimated_cost_micros": totals.estimated_cost_micros,
        "input_tokens": totals.input_tokens,
        "output_tokens": totals.output_tokens,
        "cache_read_tokens": totals.cache_read_tokens,
        "cache_write_tokens": totals.cache_write_tokens,
        "model_runtime_ms": totals.model_runtime_ms,
    }


def user_usage_to_json(answer: usage_service_pb2.GetUserUsageResponse) -> Json:
    """Convert the usage of one user: totals, by model and by chat tree."""
    return {
        "totals": totals_to_json(answer.totals),
        "by_model": rows_to_json(answer.by_model),
        "by_chat": rows_to_json(answer.by_chat),
    }


def rows_to_json(rows: Iterable[usage_pb2.UsageRow]) -> list[Json]:
    """Convert rows of totals with their subjects."""
    return [
        {"id": row.id, "name": row.name or None, "totals": totals_to_json(row.totals)}
        for row in rows
    ]


def limit_to_json(limit: usage_pb2.SpendLimit) -> Json:
    """Convert a spend limit."""
    return {
        "user_id": limit.user_id or None,
        "group_id": limit.group_id or None,
        "everyone": limit.everyone,
        "limit_micros": limit.limit_micros,
        "period": PERIOD.get(limit.period),
    }


def status_to_json(status: usage_pb2.SpendStatus) -> Json:
    """Convert the spend status of a user."""
    return {
        "limit": limit_to_json(status.limit) if status.HasField("limit") else None,
        "spent_micros": status.spent_micros,
        "resets_at": time_of(status, "resets_at"),
    }


def period_to_proto(period: LimitPeriod) -> "usage_pb2.LimitPeriod.ValueType":
    """Convert a limit period to its proto."""
    return usage_pb2.LimitPeriod.Value(f"LIMIT_PERIOD_{period.name}")
