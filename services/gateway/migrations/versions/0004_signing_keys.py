"""Which key signed a service token, so that those of a retired key are not listed as valid."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Of tokens that were issued before, it is not known.
    op.execute("ALTER TABLE identity.service_tokens ADD COLUMN signing_key_id text")


def downgrade() -> None:
    op.execute("ALTER TABLE identity.service_tokens DROP COLUMN signing_key_id")
