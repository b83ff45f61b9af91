"""Users can be deleted, and a repeated request for a new one finds the first."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        ALTER TABLE identity.users
            ADD COLUMN creation_request text CONSTRAINT users_creation_request_unique UNIQUE,
            DROP CONSTRAINT users_state_known,
            DROP CONSTRAINT users_deactivation_dated,
            ADD CONSTRAINT users_state_known
                CHECK (state IN ('active', 'deactivated', 'deleted')),
            ADD CONSTRAINT users_deactivation_dated
                CHECK ((state = 'active') = (deactivated_at IS NULL))
    """)


def downgrade() -> None:
    op.execute("""
        ALTER TABLE identity.users
            DROP COLUMN creation_request,
            DROP CONSTRAINT users_state_known,
            DROP CONSTRAINT users_deactivation_dated,
            ADD CONSTRAINT users_state_known CHECK (state IN ('active', 'deactivated')),
            ADD CONSTRAINT users_deactivation_dated
                CHECK ((state = 'deactivated') = (deactivated_at IS NOT NULL))
    """)
