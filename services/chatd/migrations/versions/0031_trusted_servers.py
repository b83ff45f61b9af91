"""MCP servers inside workspaces that their owners trust."""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE chat.trusted_servers (
            workspace_id uuid NOT NULL CONSTRAINT trusted_servers_workspace_fkey
                REFERENCES chat.workspaces (id) ON DELETE CASCADE,
            name text NOT NULL,
            digest text NOT NULL,
            user_id uuid NOT NULL,
            trusted_at timestamptz NOT NULL,
            CONSTRAINT trusted_servers_pkey PRIMARY KEY (workspace_id, name)
        )
    """)
