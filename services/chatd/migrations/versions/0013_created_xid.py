"""Which transaction made a chat, so that feeds tell new chats from changed ones."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

STATEMENTS = (
    # Chats that are there already were made before every cursor; a constant rewrites no row.
    "ALTER TABLE chat.chats ADD COLUMN created_xid xid8 NOT NULL DEFAULT '0'",
    "ALTER TABLE chat.chats ALTER COLUMN created_xid SET DEFAULT pg_current_xact_id()",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
