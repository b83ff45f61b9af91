"""Reverts: the one that a chat has to complete, and those that are completed."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE chat.chat_exec ADD COLUMN revert json",
    """
    ALTER TABLE chat.chat_exec ADD CONSTRAINT chat_exec_only_runners_revert
        CHECK (revert IS NULL OR status = 'running')
    """,
    """
    CREATE TABLE chat.chat_reverts (
        id uuid NOT NULL,
        chat_id uuid NOT NULL,
        kind text NOT NULL,
        message_id bigint NOT NULL,
        restores_files boolean NOT NULL,
        undone_id uuid,
        undone_version bigint NOT NULL,
        open_calls json NOT NULL,
        version bigint NOT NULL,
        report bytea NOT NULL,
        created_at timestamptz NOT NULL,
        CONSTRAINT chat_reverts_pkey PRIMARY KEY (id),
        CONSTRAINT chat_reverts_chat_fkey FOREIGN KEY (chat_id)
            REFERENCES chat.chats (id) ON DELETE CASCADE,
        CONSTRAINT chat_reverts_kind_known CHECK (kind IN ('history', 'undo', 'edit')),
        CONSTRAINT chat_reverts_only_undo_names_another
            CHECK ((kind = 'undo') = (undone_id IS NOT NULL))
    )
    """,
    "CREATE INDEX chat_reverts_by_chat ON chat.chat_reverts (chat_id, version)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
