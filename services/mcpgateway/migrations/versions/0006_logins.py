"""Logins of users with OAuth: registered clients, flows and grants."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE mcp.oauth_clients (
        id uuid PRIMARY KEY,
        server_id uuid NOT NULL,
        issuer text NOT NULL,
        redirect_uri text NOT NULL,
        client_id text NOT NULL,
        auth_method text NOT NULL,
        sealed bytea NOT NULL,
        key_id text NOT NULL,
        expires_at timestamptz,
        registered_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT oauth_clients_issuer_unique UNIQUE (server_id, issuer, redirect_uri),
        CONSTRAINT oauth_clients_auth_method_known CHECK (
            auth_method IN ('none', 'client_secret_basic', 'client_secret_post')),
        CONSTRAINT oauth_clients_server_fkey FOREIGN KEY (server_id)
            REFERENCES mcp.servers (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE mcp.oauth_flows (
        id uuid PRIMARY KEY,
        state_sha256 bytea NOT NULL,
        server_id uuid NOT NULL,
        user_id text NOT NULL,
        request_id text NOT NULL,
        browser_sha256 bytea NOT NULL,
        fingerprint text NOT NULL,
        sealed bytea NOT NULL,
        key_id text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL,
        consumed_at timestamptz,
        consumed_by text NOT NULL DEFAULT '',
        completed_at timestamptz,
        CONSTRAINT oauth_flows_state_unique UNIQUE (state_sha256),
        CONSTRAINT oauth_flows_hashes_whole CHECK (
            octet_length(state_sha256) = 32 AND octet_length(browser_sha256) = 32),
        CONSTRAINT oauth_flows_server_fkey FOREIGN KEY (server_id)
            REFERENCES mcp.servers (id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX oauth_flows_by_user ON mcp.oauth_flows (user_id, server_id, created_at)",
    "CREATE INDEX oauth_flows_by_expiry ON mcp.oauth_flows (expires_at)",
    """
    CREATE TABLE mcp.grants (
        id uuid PRIMARY KEY,
        server_id uuid NOT NULL,
        user_id text NOT NULL,
        version bigint NOT NULL,
        fingerprint text NOT NULL,
        terms jsonb NOT NULL,
        sealed bytea NOT NULL,
        key_id text NOT NULL,
        expires_at timestamptz,
        refresh_at timestamptz,
        refreshing_until timestamptz,
        granted_scopes text[] NOT NULL,
        missing_scopes text[] NOT NULL DEFAULT '{}',
        failure text NOT NULL DEFAULT '',
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT grants_owner_unique UNIQUE (user_id, server_id),
        CONSTRAINT grants_failure_known CHECK (failure IN (
            '', 'refresh_refused', 'token_refused', 'client_refused')),
        CONSTRAINT grants_server_fkey FOREIGN KEY (server_id)
            REFERENCES mcp.servers (id) ON DELETE CASCADE
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
