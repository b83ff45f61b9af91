"""Tombstones of calls whose rows are deleted."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE mcp.calls ADD COLUMN pruned_at timestamptz")
    op.execute("CREATE TABLE mcp.tombstones (digest uuid PRIMARY KEY)")
