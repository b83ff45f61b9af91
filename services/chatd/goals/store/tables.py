"""The table of goals."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from chatd.primitives.store.columns import (
    count_column,
    id_column,
    metadata,
    of_chat,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

goals = Table(
    "goals",
    metadata,
    id_column("chat_id"),
    id_column("id"),
    id_column("owner_id"),
    text_column("owner_role"),
    text_column("text"),
    text_column("check_command"),
    count_column("turns_max"),
    count_column("seconds_max"),
    count_column("cost_max_micros"),
    text_column("state"),
    text_column("reason"),
    count_column("turns_count"),
    text_column("check_output"),
    count_column("resumes_count"),
    count_column("resumed_version"),
    time_column("claimed_until", nullable=True),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    Column("judge_model_id", Text, nullable=False, server_default=text("''")),
    Column("verdict", Text, nullable=False, server_default=text("''")),
    PrimaryKeyConstraint("chat_id", name=Constraint.GOALS_PKEY),
    of_chat(Constraint.GOALS_CHAT_FKEY),
    CheckConstraint(
        "state IN ('active', 'paused', 'reached', 'exhausted')", name=Constraint.GOALS_STATE_KNOWN
    ),
    Index("goals_active", "chat_id", postgresql_where=text("state = 'active'")),
)
