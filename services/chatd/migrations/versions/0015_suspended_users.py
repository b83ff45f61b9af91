"""Names of tables and columns: suspended users, and the specification of a workspace."""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE chat.barred_users RENAME TO suspended_users",
    "ALTER TABLE chat.suspended_users RENAME COLUMN barred_at TO suspended_at",
    "ALTER TABLE chat.suspended_users RENAME CONSTRAINT barred_users_pkey TO suspended_users_pkey",
    "ALTER TABLE chat.workspaces RENAME COLUMN recipe TO spec",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
