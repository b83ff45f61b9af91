"""Access, required servers, pinned definitions, values of users, health, and changes by admins."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATEMENTS = (
    # Constant defaults rewrite no row.
    "ALTER TABLE mcp.servers ADD COLUMN user_ids text[] NOT NULL DEFAULT '{}'",
    "ALTER TABLE mcp.servers ADD COLUMN group_ids text[] NOT NULL DEFAULT '{}'",
    "ALTER TABLE mcp.servers ADD COLUMN is_required boolean NOT NULL DEFAULT false",
    "ALTER TABLE mcp.servers ADD COLUMN pin_policy text NOT NULL DEFAULT 'quarantine'",
    "ALTER TABLE mcp.servers ADD COLUMN user_values jsonb NOT NULL DEFAULT '[]'",
    "ALTER TABLE mcp.servers ADD COLUMN tool_search text NOT NULL DEFAULT 'automatic'",
    """
    ALTER TABLE mcp.servers ADD CONSTRAINT servers_pin_policy_known
        CHECK (pin_policy IN ('off', 'quarantine'))
    """,
    """
    ALTER TABLE mcp.servers ADD CONSTRAINT servers_tool_search_known
        CHECK (tool_search IN ('automatic', 'always', 'never'))
    """,
    """
    CREATE TABLE mcp.user_values (
        id uuid PRIMARY KEY,
        server_id uuid NOT NULL,
        user_id text NOT NULL,
        header_names text[] NOT NULL,
        sealed bytea NOT NULL,
        key_id text NOT NULL,
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT user_values_owner_unique UNIQUE (user_id, server_id),
        CONSTRAINT user_values_server_fkey FOREIGN KEY (server_id)
            REFERENCES mcp.servers (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE mcp.tool_definitions (
        server_id uuid NOT NULL,
        tool text NOT NULL,
        digest text NOT NULL,
        description text NOT NULL,
        input_schema text NOT NULL,
        is_approved boolean NOT NULL,
        approved_by text NOT NULL DEFAULT '',
        first_seen_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT tool_definitions_pkey PRIMARY KEY (server_id, tool, digest),
        CONSTRAINT tool_definitions_server_fkey FOREIGN KEY (server_id)
            REFERENCES mcp.servers (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE mcp.server_health (
        server_id uuid PRIMARY KEY,
        state text NOT NULL,
        reason text NOT NULL,
        detail text NOT NULL,
        last_ok_at timestamptz,
        last_error_at timestamptz,
        tool_count integer NOT NULL,
        CONSTRAINT server_health_server_fkey FOREIGN KEY (server_id)
            REFERENCES mcp.servers (id) ON DELETE CASCADE
    )
    """,
    # No foreign key: changes outlive their server.
    """
    CREATE TABLE mcp.server_changes (
        id uuid PRIMARY KEY,
        server_id uuid NOT NULL,
        user_id text NOT NULL,
        kind text NOT NULL,
        version bigint NOT NULL,
        fields jsonb NOT NULL,
        changed_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT server_changes_kind_known
            CHECK (kind IN ('created', 'updated', 'deleted', 'tools_approved'))
    )
    """,
    "CREATE INDEX server_changes_by_server ON mcp.server_changes (server_id, id)",
    # No foreign keys: the record of a call outlives its server, its user and its chat.
    """
    CREATE TABLE mcp.recorded_calls (
        execution_id text PRIMARY KEY,
        server_id text NOT NULL,
        slug text NOT NULL,
        tool text NOT NULL,
        user_id text NOT NULL,
        chat_id text NOT NULL,
        started_at timestamptz NOT NULL,
        duration_ms bigint NOT NULL,
        outcome text NOT NULL,
        reason text NOT NULL,
        original_bytes bigint NOT NULL,
        CONSTRAINT recorded_calls_outcome_known CHECK (outcome IN (
            'succeeded', 'tool_error', 'failed', 'cancelled', 'timed_out', 'unknown'))
    )
    """,
    "CREATE INDEX recorded_calls_by_time ON mcp.recorded_calls (started_at, execution_id)",
    """
    CREATE INDEX recorded_calls_by_user
        ON mcp.recorded_calls (user_id, started_at, execution_id)
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
