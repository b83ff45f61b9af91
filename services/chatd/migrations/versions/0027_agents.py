"""Calls that wait for other agents."""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE chat.chat_actions DROP CONSTRAINT chat_actions_kind_known",
    """
    ALTER TABLE chat.chat_actions ADD CONSTRAINT chat_actions_kind_known
        CHECK (kind IN ('client', 'question', 'plan', 'approval', 'loop', 'login', 'elicitation',
            'agents'))
    """,
    # Open waits are looked for all the time, and there are few.
    """
    CREATE INDEX chat_actions_waiting_for_agents ON chat.chat_actions (chat_id)
        WHERE kind = 'agents' AND ended_at IS NULL
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
