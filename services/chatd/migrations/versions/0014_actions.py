"""The mode of each dispatched call, and the actions that chats wait for."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

STATEMENTS = (
    # A constant default rewrites no row.
    "ALTER TABLE chat.tool_calls ADD COLUMN mode text NOT NULL DEFAULT ''",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
