"""The tables of usage, cost and spend limits."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from chatd.primitives.store.columns import (
    count_column,
    id_column,
    json_column,
    metadata,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

# No foreign key to chats: the cost of a chat is counted after it is deleted.
usage = Table(
    "usage",
    metadata,
    id_column("id"),
    id_column("chat_id"),
    id_column("root_chat_id"),
    id_column("owner_id"),
    text_column("purpose"),
    text_column("provider"),
    text_column("model"),
    text_column("outcome"),
    count_column("input_tokens"),
    count_column("output_tokens"),
    count_column("reasoning_tokens"),
    count_column("cache_read_tokens"),
    count_column("cache_write_tokens"),
    Column("input_price", Numeric),
    Column("output_price", Numeric),
    Column("cache_read_price", Numeric),
    Column("cache_write_price", Numeric),
    Column("cost_micros", BigInteger),
    count_column("model_runtime_ms"),
    time_column("created_at"),
    Column("message_id", BigInteger),
    Column("model_name", Text, nullable=False, server_default=text("''")),
    Column("is_estimate", Boolean, nullable=False, server_default=text("false")),
    Column("is_fallback", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("id", name=Constraint.USAGE_PKEY),
    CheckConstraint(
        "least(input_tokens, output_tokens, reasoning_tokens, cache_read_tokens,"
        " cache_write_tokens, model_runtime_ms) >= 0",
        name=Constraint.USAGE_COUNTS_POSITIVE,
    ),
    CheckConstraint(
        "greatest(input_tokens, output_tokens, reasoning_tokens, cache_read_tokens,"
        " cache_write_tokens) <= 1000000000000",
        name=Constraint.USAGE_COUNTS_BOUNDED,
    ),
    CheckConstraint("cost_micros >= 0", name=Constraint.USAGE_COST_POSITIVE),
    CheckConstraint("cost_micros <= 10000000000000", name=Constraint.USAGE_COST_BOUNDED),
    CheckConstraint(
        "purpose IN ('turn', 'compaction', 'title', 'label', 'summary', 'advisor', 'judge')",
        name=Constraint.USAGE_PURPOSE_KNOWN,
    ),
    CheckConstraint(
        "outcome IN ('done', 'failed', 'aborted', 'interrupted')",
        name=Constraint.USAGE_OUTCOME_KNOWN,
    ),
    Index("usage_by_owner", "owner_id", "created_at"),
    Index("usage_by_root", "root_chat_id"),
    # Rows are inserted in the order of time, so this index costs very little.
    Index("usage_by_time", "created_at", postgresql_using="brin"),
)

# The amount charged for a call if its process dies; no foreign key, for the same reason.
open_model_calls = Table(
    "open_model_calls",
    metadata,
    id_column("id"),
    id_column("worker_id"),
    id_column("chat_id"),
    id_column("owner_id"),
    count_column("history_version"),
    count_column("generation_attempt"),
    text_column("purpose"),
    json_column("use"),
    PrimaryKeyConstraint("id", name=Constraint.OPEN_MODEL_CALLS_PKEY),
)

spend_limits = Table(
    "spend_limits",
    metadata,
    text_column("subject_kind"),
    id_column("subject_id"),
    count_column("limit_micros"),
    text_column("period"),
    PrimaryKeyConstraint("subject_kind", "subject_id", name=Constraint.SPEND_LIMITS_PKEY),
    CheckConstraint(
        "subject_kind IN ('user', 'group', 'everyone')",
        name=Constraint.SPEND_LIMITS_SUBJECT_KNOWN,
    ),
    CheckConstraint(
        "subject_kind <> 'everyone' OR subject_id = '00000000-0000-0000-0000-000000000000'",
        name=Constraint.SPEND_LIMITS_ONE_FOR_EVERYONE,
    ),
    CheckConstraint(
        "limit_micros BETWEEN 1 AND 10000000000000", name=Constraint.SPEND_LIMITS_BOUNDED
    ),
    CheckConstraint(
        "period IN ('day', 'week', 'month')", name=Constraint.SPEND_LIMITS_PERIOD_KNOWN
    ),
)
