"""Catalogues outlive a restart, and renewals of logins name the process that makes them."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE mcp.catalogues (
            server_id uuid NOT NULL,
            user_id text NOT NULL,
            server_version bigint NOT NULL,
            content bytea NOT NULL,
            fetched_at timestamptz NOT NULL,
            CONSTRAINT catalogues_pkey PRIMARY KEY (server_id, user_id),
            CONSTRAINT catalogues_server_fkey FOREIGN KEY (server_id)
                REFERENCES mcp.servers (id) ON DELETE CASCADE
        )
    """)
    op.execute("CREATE INDEX catalogues_by_age ON mcp.catalogues (fetched_at)")
    op.execute("CREATE INDEX catalogues_by_user ON mcp.catalogues (user_id)")
    op.execute("ALTER TABLE mcp.grants ADD COLUMN refreshing_by uuid")
