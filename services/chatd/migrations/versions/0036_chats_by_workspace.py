"""The chats that are bound to a workspace: loops ask for them, for each workspace that may go."""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE INDEX chats_by_workspace ON chat.chats (workspace_id)
            WHERE workspace_id IS NOT NULL
    """)
