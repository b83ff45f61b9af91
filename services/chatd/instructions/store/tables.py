"""The tables of pinned instruction files and of the skills of users."""

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
    json_column("skills"),
    json_column("agent_types"),
    time_column("pinned_at"),
    PrimaryKeyConstraint("chat_id", name=Constraint.CHAT_INSTRUCTIONS_PKEY),
    of_chat(Constraint.CHAT_INSTRUCTIONS_CHAT_FKEY),
)

skills = Table(
    "skills",
    metadata,
    id_column("owner_id"),
    text_column("name"),
    text_column("description"),
    text_column("body"),
    time_column("updated_at"),
    PrimaryKeyConstraint("owner_id", "name", name=Constraint.SKILLS_PKEY),
)
