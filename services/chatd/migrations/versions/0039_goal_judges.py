"""Models that judge goals, and the purpose of their calls."""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    ALTER TABLE chat.goals
        ADD COLUMN judge_model_id text NOT NULL DEFAULT '',
        ADD COLUMN verdict text NOT NULL DEFAULT ''
    """,
    "ALTER TABLE chat.usage DROP CONSTRAINT usage_purpose_known",
    """
    ALTER TABLE chat.usage ADD CONSTRAINT usage_purpose_known CHECK (
        purpose IN ('turn', 'compaction', 'title', 'label', 'summary', 'advisor', 'judge'))
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
