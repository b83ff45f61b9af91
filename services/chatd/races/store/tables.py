"""The tables of races and their candidates."""

from sqlalchemy import Column, ForeignKeyConstraint, Integer, PrimaryKeyConstraint, Table

from chatd.primitives.store.columns import (
    count_column,
    id_column,
    metadata,
    of_chat,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

races = Table(
    "races",
    metadata,
    id_column("chat_id"),
    text_column("check_command"),
    time_column("cancelled_at", nullable=True),
    id_column("applied_chat_id", nullable=True),
    PrimaryKeyConstraint("chat_id", name=Constraint.RACES_PKEY),
    of_chat(Constraint.RACES_CHAT_FKEY),
)

race_candidates = Table(
    "race_candidates",
    metadata,
    id_column("race_id"),
    Column("position", Integer, nullable=False),
    id_column("chat_id"),  # Not a foreign key: the chat is created when all forks are there.
    text_column("model"),
    text_column("model_id"),
    Column("check_exit_code", Integer, nullable=True),
    text_column("check_output"),
    count_column("checked_version"),
    PrimaryKeyConstraint("race_id", "position", name=Constraint.RACE_CANDIDATES_PKEY),
    ForeignKeyConstraint(
        ["race_id"],
        ["chat.races.chat_id"],
        name=Constraint.RACE_CANDIDATES_RACE_FKEY,
        ondelete="CASCADE",
    ),
)
