"""Retention: notices to the owners of chats, and counts of what was done by age."""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    ALTER TABLE chat.chats
        ADD COLUMN archives_at timestamptz,
        ADD COLUMN purges_at timestamptz,
        ADD COLUMN retention_noticed_at timestamptz,
        ADD CONSTRAINT chats_one_ending_is_noticed CHECK (
            num_nonnulls(archives_at, purges_at) = num_nonnulls(retention_noticed_at)),
        ADD CONSTRAINT chats_only_roots_are_noticed CHECK (
            retention_noticed_at IS NULL OR parent_chat_id IS NULL)
    """,
    """
    CREATE TABLE chat.retention_counts (
        day date NOT NULL,
        noticed bigint NOT NULL DEFAULT 0,
        withdrawn bigint NOT NULL DEFAULT 0,
        archived bigint NOT NULL DEFAULT 0,
        purged bigint NOT NULL DEFAULT 0,
        CONSTRAINT retention_counts_pkey PRIMARY KEY (day)
    )
    """,
)


def upgrade() -> None:
    """Add the columns and the table."""
    for statement in STATEMENTS:
        op.execute(statement)
