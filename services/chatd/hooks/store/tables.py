"""The tables of hooks and of their deliveries."""

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from chatd.primitives.store.columns import (
    count_column,
    flag_column,
    id_column,
    metadata,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

hooks = Table(
    "hooks",
    metadata,
    id_column("id"),
    text_column("name"),
    text_column("url"),
    Column("events", ARRAY(Text), nullable=False),
    Column("tools", ARRAY(Text), nullable=False),
    count_column("timeout_ms"),
    text_column("fail_policy"),
    flag_column("is_disabled"),
    Column("sealed", LargeBinary, nullable=False),
    text_column("sealed_key_id"),
    count_column("version"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    # The secret before the last rotation, for as long as it signs as well.
    Column("previous_sealed", LargeBinary, nullable=True),
    Column("previous_sealed_key_id", Text, nullable=True),
    time_column("previous_until", nullable=True),
    Column("rotation_hash", LargeBinary, nullable=True),
    PrimaryKeyConstraint("id", name=Constraint.HOOKS_PKEY),
    CheckConstraint(
        "cardinality(events) > 0 AND events <@ ARRAY['session_start', 'user_prompt_submit',"
        " 'pre_tool_use', 'post_tool_use', 'pre_compact', 'post_compact', 'stop']",
        name=Constraint.HOOKS_EVENTS_KNOWN,
    ),
    CheckConstraint("fail_policy IN ('closed', 'open')", name=Constraint.HOOKS_FAIL_POLICY_KNOWN),
    CheckConstraint("timeout_ms BETWEEN 100 AND 5000", name=Constraint.HOOKS_TIMEOUT_BOUNDED),
)

# Without a foreign key to chats: the log of a hook outlives them, and has nothing of their
# content beside what the hook itself says about it.
hook_deliveries = Table(
    "hook_deliveries",
    metadata,
    id_column("hook_id"),
    id_column("dispatch_id"),
    id_column("chat_id", nullable=True),  # NULL for a test.
    text_column("event"),
    text_column("tool_name"),
    text_column("outcome"),
    count_column("http_status"),
    text_column("problem"),
    count_column("duration_ms"),
    count_column("attempts"),
    time_column("created_at"),
    text_column("notice"),
    PrimaryKeyConstraint("hook_id", "dispatch_id", name=Constraint.HOOK_DELIVERIES_PKEY),
    ForeignKeyConstraint(
        ["hook_id"],
        ["chat.hooks.id"],
        name=Constraint.HOOK_DELIVERIES_HOOK_FKEY,
        ondelete="CASCADE",
    ),
    Index("hook_deliveries_by_time", "hook_id", "created_at"),
)
