"""Edits that can be undone: by which message they replaced others, and when they deleted these."""

from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

REPLACEMENTS = """
ALTER TABLE chat.chat_reverts
    ADD COLUMN replacement_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN deleted_version bigint NOT NULL DEFAULT 0
"""


def upgrade() -> None:
    op.execute(REPLACEMENTS)
