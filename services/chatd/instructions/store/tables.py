"""The table of pinned instruction files."""

from sqlalchemy import PrimaryKeyConstraint, Table

from chatd.primitives.store.columns import (
    count_column,
    id_column,
    json_column,
    metadata,
    of_chat,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

chat_instructions = Table(
    "chat_instructions",
    metadata,
    id_column("chat_id"),
    count_column("version"),
    text_column("digest"),
    json_column("files"),
    time_column("pinned_at"),
    PrimaryKeyConstraint("chat_id", name=Constraint.CHAT_INSTRUCTIONS_PKEY),
    of_chat(Constraint.CHAT_INSTRUCTIONS_CHAT_FKEY),
)
