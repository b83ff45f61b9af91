"""What is left of chats that were deleted, so that a list that is followed can tell of it."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE chat.deleted_chats (
    chat_id uuid CONSTRAINT deleted_chats_pkey PRIMARY KEY,
    owner_id uuid NOT NULL,
    changed_xid xid8 NOT NULL,
    deleted_at timestamptz NOT NULL
)
"""
INDEX = "CREATE INDEX deleted_chats_by_owner ON chat.deleted_chats (owner_id, changed_xid)"


def upgrade() -> None:
    op.execute(TABLE)
    op.execute(INDEX)
