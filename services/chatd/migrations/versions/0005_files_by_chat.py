"""Which chats hold a file, found without reading all that any chat holds."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

INDEX = "CREATE INDEX chat_files_by_file ON chat.chat_files (file_id)"


def upgrade() -> None:
    op.execute(INDEX)
