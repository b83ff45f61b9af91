"""Workers that have ended keep their row and cannot come back; workers in quarantine."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE chat.workers ADD COLUMN ended_at timestamptz",
    "ALTER TABLE chat.workers ADD COLUMN is_quarantine boolean NOT NULL DEFAULT false",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
