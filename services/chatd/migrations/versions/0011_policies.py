"""Which policy a workspace has and which its node goes by; deleted workspaces by their age."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE chat.workspaces ADD COLUMN policy bigint NOT NULL DEFAULT 0",
    "ALTER TABLE chat.workspaces ADD COLUMN policy_told bigint NOT NULL DEFAULT 0",
    "CREATE INDEX workspaces_to_tell ON chat.workspaces (id)"
    " WHERE state IN ('ready', 'busy') AND policy > policy_told",
    "CREATE INDEX workspaces_gone ON chat.workspaces (changed_at) WHERE state = 'deleted'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
