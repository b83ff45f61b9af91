"""What is left of shares that were revoked, so that a list that is followed can tell of it."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE chat.revoked_shares (
        chat_id uuid NOT NULL,
        grantee_id uuid NOT NULL,
        changed_xid xid8 NOT NULL,
        revoked_at timestamptz NOT NULL,
        CONSTRAINT revoked_shares_pkey PRIMARY KEY (chat_id, grantee_id)
    )
    """,
    """
    CREATE INDEX revoked_shares_by_grantee ON chat.revoked_shares (grantee_id, changed_xid)
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
