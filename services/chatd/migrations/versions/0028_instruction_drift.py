"""Whether the instruction files of a chat's workspace differ from the pinned ones."""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE chat.chats ADD COLUMN instructions_drifted boolean NOT NULL DEFAULT false")
