"""Workers that have ended keep their row, so that they cannot come back."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

STATEMENTS = ("ALTER TABLE chat.workers ADD COLUMN ended_at timestamptz",)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
