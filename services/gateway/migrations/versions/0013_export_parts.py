"""Large files of exports are stored in parts."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE identity.account_export_parts (
            export_id uuid NOT NULL
                CONSTRAINT account_export_parts_export_fkey
                REFERENCES identity.account_exports (id) ON DELETE CASCADE,
            name text NOT NULL,
            part integer NOT NULL,
            data bytea NOT NULL,
            PRIMARY KEY (export_id, name, part)
        )
    """)


def downgrade() -> None:
    op.execute("DROP TABLE identity.account_export_parts")
