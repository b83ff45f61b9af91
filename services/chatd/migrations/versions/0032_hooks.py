"""Hooks, and the log of their deliveries."""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE chat.hooks (
        id uuid NOT NULL,
        name text NOT NULL,
        url text NOT NULL,
        events text[] NOT NULL,
        tools text[] NOT NULL,
        timeout_ms bigint NOT NULL,
        fail_policy text NOT NULL,
        is_disabled boolean NOT NULL,
        sealed bytea NOT NULL,
        sealed_key_id text NOT NULL,
        version bigint NOT NULL,
        request_hash bytea NOT NULL,
        created_at timestamptz NOT NULL,
        CONSTRAINT hooks_pkey PRIMARY KEY (id),
        CONSTRAINT hooks_events_known CHECK (
            cardinality(events) > 0 AND events <@ ARRAY['session_start', 'user_prompt_submit',
                'pre_tool_use', 'post_tool_use', 'pre_compact', 'post_compact', 'stop']),
        CONSTRAINT hooks_fail_policy_known CHECK (fail_policy IN ('closed', 'open')),
        CONSTRAINT hooks_timeout_bounded CHECK (timeout_ms BETWEEN 100 AND 5000)
    )
    """,
    """
    CREATE TABLE chat.hook_deliveries (
        hook_id uuid NOT NULL,
        dispatch_id uuid NOT NULL,
        chat_id uuid,
        event text NOT NULL,
        tool_name text NOT NULL,
        outcome text NOT NULL,
        http_status bigint NOT NULL,
        problem text NOT NULL,
        duration_ms bigint NOT NULL,
        attempts bigint NOT NULL,
        created_at timestamptz NOT NULL,
        CONSTRAINT hook_deliveries_pkey PRIMARY KEY (hook_id, dispatch_id),
        CONSTRAINT hook_deliveries_hook_fkey FOREIGN KEY (hook_id)
            REFERENCES chat.hooks (id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX hook_deliveries_by_time ON chat.hook_deliveries (hook_id, created_at)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
