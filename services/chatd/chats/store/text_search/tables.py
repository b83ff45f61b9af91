"""The tables of the index of words."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

from chatd.primitives.store.columns import (
    TransactionId,
    count_column,
    id_column,
    metadata,
    of_chat,
)
from chatd.primitives.store.constraints import Constraint

message_words = Table(
    "message_words",
    metadata,
    id_column("chat_id"),
    count_column("message_id"),
    Column("words", TSVECTOR, nullable=False),
    PrimaryKeyConstraint("chat_id", "message_id", name=Constraint.MESSAGE_WORDS_PKEY),
    ForeignKeyConstraint(
        ["chat_id", "message_id"],
        ["chat.chat_messages.chat_id", "chat.chat_messages.id"],
        name=Constraint.MESSAGE_WORDS_MESSAGE_FKEY,
        ondelete="CASCADE",
    ),
    Index("message_words_by_word", "words", postgresql_using="gin"),
)

# Up to which revision the messages of a chat are in `message_words`.
indexed_chats = Table(
    "indexed_chats",
    metadata,
    id_column("chat_id"),
    count_column("revision"),
    PrimaryKeyConstraint("chat_id", name=Constraint.INDEXED_CHATS_PKEY),
    of_chat(Constraint.INDEXED_CHATS_CHAT_FKEY),
)

# The transaction up to which changed chats were indexed: one row, locked by who indexes.
search_progress = Table(
    "search_progress",
    metadata,
    Column("id", SmallInteger, nullable=False),
    Column("horizon", TransactionId, nullable=False),
    PrimaryKeyConstraint("id", name=Constraint.SEARCH_PROGRESS_PKEY),
    CheckConstraint("id = 1", name=Constraint.SEARCH_PROGRESS_ONE_ROW),
)
