"""Exports that failed say why."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        ALTER TABLE identity.account_exports
            ADD COLUMN failure text NOT NULL DEFAULT '',
            ADD CONSTRAINT account_exports_failed_ones_ended
                CHECK (failure = '' OR completed_at IS NOT NULL)
    """)


def downgrade() -> None:
    op.execute("ALTER TABLE identity.account_exports DROP COLUMN failure")
