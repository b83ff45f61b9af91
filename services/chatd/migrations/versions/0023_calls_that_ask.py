"""Running calls that ask people, and calls that are to be cancelled at their executors."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE chat.chat_actions DROP CONSTRAINT chat_actions_kind_known",
    """
    ALTER TABLE chat.chat_actions ADD CONSTRAINT chat_actions_kind_known
        CHECK (kind IN ('client', 'question', 'plan', 'approval', 'loop', 'login', 'elicitation'))
    """,
    # Rows outlive their chats, so nothing refers to them.
    """
    CREATE TABLE chat.cancelled_calls (
        execution_id uuid NOT NULL,
        chat_id uuid NOT NULL,
        owner_id uuid NOT NULL,
        owner_role text NOT NULL,
        tool_call_id text NOT NULL,
        tool_name text NOT NULL,
        executor text NOT NULL,
        journal_generation text NOT NULL,
        owner_epoch bigint NOT NULL,
        created_at timestamptz NOT NULL,
        try_at timestamptz NOT NULL,
        CONSTRAINT cancelled_calls_pkey PRIMARY KEY (execution_id)
    )
    """,
    "CREATE INDEX cancelled_calls_by_time ON chat.cancelled_calls (try_at)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
