"""Instruction files of workspaces, as they are pinned in the prompts of chats."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE chat.chat_instructions (
            chat_id uuid NOT NULL CONSTRAINT chat_instructions_pkey PRIMARY KEY
                CONSTRAINT chat_instructions_chat_fkey
                REFERENCES chat.chats (id) ON DELETE CASCADE,
            version bigint NOT NULL,
            digest text NOT NULL,
            files json NOT NULL,
            pinned_at timestamptz NOT NULL
        )
    """)
