"""Schedules of users and their runs."""

from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE chat.schedules (
        id uuid NOT NULL,
        owner_id uuid NOT NULL,
        owner_role text NOT NULL,
        name text NOT NULL,
        text text NOT NULL,
        chat_id uuid,
        model_id text NOT NULL,
        reasoning_effort text NOT NULL,
        mode text NOT NULL,
        workspace_id uuid,
        is_unattended boolean NOT NULL,
        at timestamptz,
        cron text NOT NULL,
        time_zone text NOT NULL,
        missed_runs text NOT NULL,
        ends_at timestamptz,
        runs_max bigint NOT NULL,
        state text NOT NULL,
        pause_reason text NOT NULL,
        next_run_at timestamptz,
        claimed_until timestamptz,
        runs_count bigint NOT NULL,
        failures_count bigint NOT NULL,
        request_hash bytea NOT NULL,
        created_at timestamptz NOT NULL,
        CONSTRAINT schedules_pkey PRIMARY KEY (id),
        CONSTRAINT schedules_timing_is_one CHECK ((at IS NULL) = (cron <> '')),
        CONSTRAINT schedules_missed_runs_known CHECK (missed_runs IN ('skip', 'run_once')),
        CONSTRAINT schedules_state_known CHECK (state IN ('active', 'paused', 'ended')),
        CONSTRAINT schedules_active_ones_run CHECK (
            state <> 'active' OR next_run_at IS NOT NULL)
    )
    """,
    "CREATE INDEX schedules_by_owner ON chat.schedules (owner_id)",
    "CREATE INDEX schedules_by_next_run ON chat.schedules (next_run_at) WHERE state = 'active'",
    """
    CREATE TABLE chat.schedule_runs (
        schedule_id uuid NOT NULL,
        planned_at timestamptz NOT NULL,
        begun_at timestamptz NOT NULL,
        outcome text NOT NULL,
        chat_id uuid,
        error text NOT NULL,
        CONSTRAINT schedule_runs_pkey PRIMARY KEY (schedule_id, planned_at),
        CONSTRAINT schedule_runs_schedule_fkey FOREIGN KEY (schedule_id)
            REFERENCES chat.schedules (id) ON DELETE CASCADE,
        CONSTRAINT schedule_runs_outcome_known CHECK (outcome IN
            ('sending', 'started', 'completed', 'failed', 'missed', 'chat_deleted'))
    )
    """,
    "CREATE INDEX schedule_runs_open ON chat.schedule_runs (begun_at) WHERE outcome = 'started'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
