"""MCP servers, the journal of calls, and who owns the chats they belong to."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE mcp.servers (
            id uuid PRIMARY KEY,
            version bigint NOT NULL,
            slug text NOT NULL CONSTRAINT servers_slug_unique UNIQUE,
            display_name text NOT NULL,
            description text NOT NULL,
            icon text NOT NULL,
            transport text NOT NULL,
            url text NOT NULL,
            auth_kind text NOT NULL,
            oauth jsonb,
            api_key_header text NOT NULL,
            tool_allow_list text[] NOT NULL,
            tool_deny_list text[] NOT NULL,
            availability text NOT NULL,
            is_enabled boolean NOT NULL,
            allow_in_plan_mode boolean NOT NULL,
            is_trusted boolean NOT NULL,
            is_stateful boolean NOT NULL,
            approval_policy text NOT NULL,
            limits jsonb NOT NULL,
            credentials bytea,
            credentials_key_id text,
            header_names text[] NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            updated_at timestamptz NOT NULL DEFAULT now(),
            CONSTRAINT servers_slug_form CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$'),
            CONSTRAINT servers_transport_known CHECK (transport IN ('streamable_http', 'sse')),
            CONSTRAINT servers_auth_kind_known CHECK (
                auth_kind IN ('none', 'oauth2', 'api_key', 'custom_headers')),
            CONSTRAINT servers_availability_known CHECK (
                availability IN ('force_on', 'default_on', 'default_off')),
            CONSTRAINT servers_approval_policy_known CHECK (
                approval_policy IN ('never', 'destructive', 'always')),
            CONSTRAINT servers_credentials_whole CHECK (
                (credentials IS NULL) = (credentials_key_id IS NULL))
        )
    """)
    op.execute("CREATE INDEX servers_by_display_name ON mcp.servers (display_name, id)")
    op.execute("""
        CREATE TABLE mcp.requests (
            caller text NOT NULL,
            request_id text NOT NULL,
            sha256 bytea NOT NULL,
            server_id uuid NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            CONSTRAINT requests_pkey PRIMARY KEY (caller, request_id)
        )
    """)
    op.execute("CREATE TABLE mcp.keys (key_id text PRIMARY KEY, fingerprint text NOT NULL)")
    op.execute("""
        CREATE TABLE mcp.journal (
            is_only boolean PRIMARY KEY DEFAULT true,
            generation text NOT NULL,
            CONSTRAINT journal_has_one_row CHECK (is_only)
        )
    """)
    op.execute("INSERT INTO mcp.journal (generation) VALUES (gen_random_uuid()::text)")
    op.execute("""
        CREATE TABLE mcp.gateways (
            id uuid PRIMARY KEY,
            lease_expires_at timestamptz NOT NULL
        )
    """)
    op.execute("""
        CREATE TABLE mcp.chat_owners (
            chat_id text PRIMARY KEY,
            owner_epoch bigint NOT NULL,
            changed_at timestamptz NOT NULL DEFAULT now()
        )
    """)
    op.execute("""
        CREATE TABLE mcp.calls (
            execution_id text PRIMARY KEY,
            caller text NOT NULL,
            chat_id text NOT NULL,
            owner_epoch bigint NOT NULL,
            sha256 bytea,
            server_id text NOT NULL,
            user_id text NOT NULL,
            tool text NOT NULL,
            gateway_id uuid,
            started_at timestamptz NOT NULL DEFAULT now(),
            cancel_requested_at timestamptz,
            finished_at timestamptz,
            acknowledged_at timestamptz,
            outcome text,
            reason text,
            message text NOT NULL DEFAULT '',
            may_have_executed boolean NOT NULL DEFAULT true,
            retry_after_ms bigint NOT NULL DEFAULT 0,
            original_bytes bigint NOT NULL DEFAULT 0,
            parts bytea,
            CONSTRAINT calls_outcome_known CHECK (outcome IN
                ('succeeded', 'tool_error', 'failed', 'cancelled', 'timed_out', 'unknown')),
            CONSTRAINT calls_end_is_whole CHECK ((finished_at IS NULL) = (outcome IS NULL)),
            CONSTRAINT calls_acknowledged_after_end CHECK (
                acknowledged_at IS NULL OR (finished_at IS NOT NULL AND parts IS NULL)),
            CONSTRAINT calls_running_somewhere CHECK (
                finished_at IS NOT NULL OR gateway_id IS NOT NULL)
        )
    """)
    op.execute("CREATE INDEX calls_running ON mcp.calls (gateway_id) WHERE finished_at IS NULL")
    op.execute("""
        CREATE INDEX calls_to_drop ON mcp.calls (acknowledged_at)
        WHERE acknowledged_at IS NOT NULL
    """)
