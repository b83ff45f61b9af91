"""Exports of all that is a person's."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE identity.account_exports (
            id uuid PRIMARY KEY,
            user_id uuid NOT NULL
                CONSTRAINT account_exports_user_id_fkey
                REFERENCES identity.users (id) ON DELETE CASCADE,
            requested_by_user_id uuid NOT NULL
                CONSTRAINT account_exports_requested_by_user_id_fkey
                REFERENCES identity.users (id),
            created_at timestamptz NOT NULL,
            completed_at timestamptz,
            expires_at timestamptz,
            claimed_until timestamptz NOT NULL,
            CONSTRAINT account_exports_complete_ones_expire
                CHECK ((completed_at IS NULL) = (expires_at IS NULL))
        )
    """)
    op.execute("""
        CREATE UNIQUE INDEX account_exports_one_runs ON identity.account_exports (user_id)
        WHERE completed_at IS NULL
    """)
    op.execute("""
        CREATE TABLE identity.account_export_entries (
            export_id uuid NOT NULL
                CONSTRAINT account_export_entries_export_fkey
                REFERENCES identity.account_exports (id) ON DELETE CASCADE,
            name text NOT NULL,
            sha256 bytea NOT NULL,
            data bytea NOT NULL,
            PRIMARY KEY (export_id, name)
        )
    """)
