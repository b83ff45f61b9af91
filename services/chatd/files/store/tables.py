"""The tables of uploaded files, and of the chats that hold them."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
)

from chatd.primitives.store.columns import id_column, metadata, of_chat, text_column, time_column
from chatd.primitives.store.constraints import Constraint

files = Table(
    "files",
    metadata,
    id_column("id"),
    id_column("owner_id"),
    text_column("name"),
    text_column("media_type"),
    Column("sha256", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
    time_column("created_at"),
    PrimaryKeyConstraint("id", name=Constraint.FILES_PKEY),
    CheckConstraint(
        "octet_length(data) BETWEEN 1 AND 10485760", name=Constraint.FILES_SIZE_BOUNDED
    ),
    CheckConstraint("octet_length(name) BETWEEN 1 AND 255", name=Constraint.FILES_NAME_BOUNDED),
)

chat_files = Table(
    "chat_files",
    metadata,
    id_column("chat_id"),
    id_column("file_id"),
    PrimaryKeyConstraint("chat_id", "file_id", name=Constraint.CHAT_FILES_PKEY),
    of_chat(Constraint.CHAT_FILES_CHAT_FKEY),
    ForeignKeyConstraint(
        ["file_id"], ["chat.files.id"], name=Constraint.CHAT_FILES_FILE_FKEY, ondelete="RESTRICT"
    ),
    Index("chat_files_by_file", "file_id"),
)
