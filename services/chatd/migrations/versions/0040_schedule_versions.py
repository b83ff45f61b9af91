"""Versions of schedules, for conditional changes."""

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE chat.schedules ADD COLUMN version bigint NOT NULL DEFAULT 1")
