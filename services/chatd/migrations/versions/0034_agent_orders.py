"""Orders of agents, and the types of agents that are pinned in the prompts of chats."""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE chat.chats ADD COLUMN orders json",
    # The default is for rows that exist already; every new one has its types.
    "ALTER TABLE chat.chat_instructions ADD COLUMN agent_types json NOT NULL DEFAULT '[]'",
    "ALTER TABLE chat.chat_instructions ALTER COLUMN agent_types DROP DEFAULT",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
