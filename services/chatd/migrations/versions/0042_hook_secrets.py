"""Signing secrets of hooks that are replaced, with a time in which both sign."""

from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

PREVIOUS_SECRETS = """
ALTER TABLE chat.hooks
    ADD COLUMN previous_sealed bytea,
    ADD COLUMN previous_sealed_key_id text,
    ADD COLUMN previous_until timestamptz,
    ADD COLUMN rotation_hash bytea
"""


def upgrade() -> None:
    op.execute(PREVIOUS_SECRETS)
