"""Notices of hooks in the log of their deliveries."""

from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

NOTICES = (
    "ALTER TABLE chat.hook_deliveries ADD COLUMN notice text NOT NULL DEFAULT ''",
    "ALTER TABLE chat.hook_deliveries ALTER COLUMN notice DROP DEFAULT",
)


def upgrade() -> None:
    for statement in NOTICES:
        op.execute(statement)
