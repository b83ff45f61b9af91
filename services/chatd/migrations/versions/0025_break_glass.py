"""Accesses of administrators to chats of others, and which chats they read."""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE chat.break_glass (
            id uuid NOT NULL CONSTRAINT break_glass_pkey PRIMARY KEY,
            administrator_id uuid NOT NULL,
            owner_id uuid NOT NULL,
            reason text NOT NULL,
            request_hash bytea NOT NULL,
            opened_at timestamptz NOT NULL,
            expires_at timestamptz NOT NULL,
            ended_at timestamptz,
            changed_xid xid8 NOT NULL,
            CONSTRAINT break_glass_is_bounded
                CHECK (expires_at <= opened_at + interval '8 hours')
        )
    """)
    op.execute(
        "CREATE INDEX break_glass_by_owner ON chat.break_glass (owner_id, administrator_id)"
    )
    op.execute("""
        CREATE TABLE chat.break_glass_reads (
            access_id uuid NOT NULL
                CONSTRAINT break_glass_reads_access_fkey
                REFERENCES chat.break_glass (id) ON DELETE CASCADE,
            chat_id uuid NOT NULL,
            CONSTRAINT break_glass_reads_pkey PRIMARY KEY (access_id, chat_id)
        )
    """)


def downgrade() -> None:
    op.execute("DROP TABLE chat.break_glass_reads, chat.break_glass")
