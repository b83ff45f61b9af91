"""The model that continues a turn when the provider of its own is down or over quota."""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE chat.chats ADD COLUMN fallback_model_id text NOT NULL DEFAULT ''",
    "ALTER TABLE chat.usage ADD COLUMN is_fallback boolean NOT NULL DEFAULT false",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
