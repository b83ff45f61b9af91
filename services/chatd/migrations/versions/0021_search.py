"""The index of what was written in chats; processes fill it in the background."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE chat.message_words (
        chat_id uuid NOT NULL,
        message_id bigint NOT NULL,
        words tsvector NOT NULL,
        CONSTRAINT message_words_pkey PRIMARY KEY (chat_id, message_id),
        CONSTRAINT message_words_message_fkey FOREIGN KEY (chat_id, message_id)
            REFERENCES chat.chat_messages (chat_id, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX message_words_by_word ON chat.message_words USING gin (words)",
    """
    CREATE TABLE chat.indexed_chats (
        chat_id uuid NOT NULL,
        revision bigint NOT NULL,
        CONSTRAINT indexed_chats_pkey PRIMARY KEY (chat_id),
        CONSTRAINT indexed_chats_chat_fkey FOREIGN KEY (chat_id)
            REFERENCES chat.chats (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE chat.search_progress (
        id smallint NOT NULL,
        horizon xid8 NOT NULL,
        CONSTRAINT search_progress_pkey PRIMARY KEY (id),
        CONSTRAINT search_progress_one_row CHECK (id = 1)
    )
    """,
    "INSERT INTO chat.search_progress VALUES (1, '0')",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
