"""Running calls are counted by their server."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE INDEX calls_running_by_server ON mcp.calls (server_id, user_id)
            WHERE finished_at IS NULL
    """)
