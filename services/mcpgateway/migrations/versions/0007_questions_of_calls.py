"""Running calls may ask a person, and are answered at any process."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        ALTER TABLE mcp.calls
            ADD COLUMN question_id text,
            ADD COLUMN question bytea,
            ADD COLUMN answer bytea,
            ADD CONSTRAINT calls_question_is_whole
                CHECK ((question_id IS NULL) = (question IS NULL)),
            ADD CONSTRAINT calls_answer_has_question
                CHECK (answer IS NULL OR question_id IS NOT NULL),
            ADD CONSTRAINT calls_question_before_end
                CHECK (finished_at IS NULL OR question_id IS NULL)
    """)
