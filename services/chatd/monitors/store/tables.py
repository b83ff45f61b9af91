"""The table of monitors."""

from sqlalchemy import CheckConstraint, Index, PrimaryKeyConstraint, Table, text

from chatd.primitives.store.columns import (
    count_column,
    id_column,
    metadata,
    of_chat,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

monitors = Table(
    "monitors",
    metadata,
    id_column("id"),
    id_column("chat_id"),
    id_column("owner_id"),
    text_column("owner_role"),
    text_column("process_id"),
    text_column("command"),
    text_column("pattern"),
    text_column("note"),
    count_column("cursor"),
    text_column("state"),
    text_column("cause"),
    text_column("detail"),
    text_column("reason"),
    time_column("claimed_until", nullable=True),
    time_column("created_at"),
    time_column("expires_at"),
    PrimaryKeyConstraint("id", name=Constraint.MONITORS_PKEY),
    of_chat(Constraint.MONITORS_CHAT_FKEY),
    CheckConstraint(
        "state IN ('waiting', 'due', 'woken', 'ended')", name=Constraint.MONITORS_STATE_KNOWN
    ),
    CheckConstraint(
        "cause IN ('', 'matched', 'exited', 'lost', 'timed_out')",
        name=Constraint.MONITORS_CAUSE_KNOWN,
    ),
    CheckConstraint(
        "state NOT IN ('due', 'woken') OR cause <> ''", name=Constraint.MONITORS_WAKE_HAS_CAUSE
    ),
    Index("monitors_by_chat", "chat_id", "created_at"),
    Index("monitors_open", "claimed_until", postgresql_where=text("state IN ('waiting', 'due')")),
)
