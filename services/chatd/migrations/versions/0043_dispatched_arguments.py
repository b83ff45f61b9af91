"""Dispatched calls with the digest of their arguments; those of older versions have none."""

from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

ARGUMENTS_DIGEST = """
ALTER TABLE chat.tool_calls ADD COLUMN arguments_digest text NOT NULL DEFAULT ''
"""


def upgrade() -> None:
    op.execute(ARGUMENTS_DIGEST)
