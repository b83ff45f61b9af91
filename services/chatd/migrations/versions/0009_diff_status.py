"""How the files of a chat's workspace differ from their last commits; null if nobody looked."""

from alembic import op

revision = "0009"
down_revision = "0007"
branch_labels = None
depends_on = None

COLUMN = "ALTER TABLE chat.chats ADD COLUMN diff_status jsonb"


def upgrade() -> None:
    op.execute(COLUMN)
