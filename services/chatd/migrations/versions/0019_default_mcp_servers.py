"""Chats for which no MCP servers were chosen use those that are on by default."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE chat.chats ALTER COLUMN mcp_server_ids DROP NOT NULL")
