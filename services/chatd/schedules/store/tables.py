"""The tables of schedules and of their runs."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    text,
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

schedules = Table(
    "schedules",
    metadata,
    id_column("id"),
    id_column("owner_id"),
    text_column("owner_role"),
    text_column("name"),
    text_column("text"),
    id_column("chat_id", nullable=True),
    text_column("model_id"),
    text_column("reasoning_effort"),
    text_column("mode"),
    id_column("workspace_id", nullable=True),
    flag_column("is_unattended"),
    time_column("at", nullable=True),
    text_column("cron"),
    text_column("time_zone"),
    text_column("missed_runs"),
    time_column("ends_at", nullable=True),
    count_column("runs_max"),
    text_column("state"),
    text_column("pause_reason"),
    time_column("next_run_at", nullable=True),
    time_column("claimed_until", nullable=True),
    count_column("runs_count"),
    count_column("failures_count"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    PrimaryKeyConstraint("id", name=Constraint.SCHEDULES_PKEY),
    CheckConstraint("(at IS NULL) = (cron <> '')", name=Constraint.SCHEDULES_TIMING_IS_ONE),
    CheckConstraint(
        "missed_runs IN ('skip', 'run_once')", name=Constraint.SCHEDULES_MISSED_RUNS_KNOWN
    ),
    CheckConstraint(
        "state IN ('active', 'paused', 'ended')", name=Constraint.SCHEDULES_STATE_KNOWN
    ),
    CheckConstraint(
        "state <> 'active' OR next_run_at IS NOT NULL", name=Constraint.SCHEDULES_ACTIVE_ONES_RUN
    ),
    Index("schedules_by_owner", "owner_id"),
    Index("schedules_by_next_run", "next_run_at", postgresql_where=text("state = 'active'")),
)

schedule_runs = Table(
    "schedule_runs",
    metadata,
    id_column("schedule_id"),
    time_column("planned_at"),
    time_column("begun_at"),
    text_column("outcome"),
    id_column("chat_id", nullable=True),
    text_column("error"),
    PrimaryKeyConstraint("schedule_id", "planned_at", name=Constraint.SCHEDULE_RUNS_PKEY),
    ForeignKeyConstraint(
        ["schedule_id"],
        ["chat.schedules.id"],
        name=Constraint.SCHEDULE_RUNS_SCHEDULE_FKEY,
        ondelete="CASCADE",
    ),
    CheckConstraint(
        "outcome IN ('sending', 'started', 'completed', 'failed', 'missed', 'chat_deleted')",
        name=Constraint.SCHEDULE_RUNS_OUTCOME_KNOWN,
    ),
    Index("schedule_runs_open", "begun_at", postgresql_where=text("outcome = 'started'")),
)
