"""The table of what chats ask of people, of clients and of their agents."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from chatd.primitives.store.columns import (
    count_column,
    id_column,
    json_column,
    metadata,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

chat_actions = Table(
    "chat_actions",
    metadata,
    id_column("id"),
    id_column("chat_id"),
    count_column("message_id"),
    text_column("tool_call_id"),
    text_column("tool_name"),
    text_column("mcp_server_id"),
    text_column("kind"),
    json_column("arguments"),
    text_column("reason"),
    text_column("mode"),
    Column("deadline_s", Double, nullable=True),
    time_column("created_at"),
    time_column("asked_at", nullable=True),
    time_column("deadline_at", nullable=True),
    time_column("ended_at", nullable=True),
    Column("ended_version", BigInteger, nullable=True),
    Column("outcome", Text, nullable=True),
    Column("ended_by", Text, nullable=False, server_default=text("''")),
    json_column("answer", nullable=True),
    json_column("result", nullable=True),
    PrimaryKeyConstraint("id", name=Constraint.CHAT_ACTIONS_PKEY),
    ForeignKeyConstraint(
        ["chat_id", "message_id"],
        ["chat.chat_messages.chat_id", "chat.chat_messages.id"],
        name=Constraint.CHAT_ACTIONS_MESSAGE_FKEY,
        ondelete="CASCADE",
    ),
    CheckConstraint(
        "kind IN ('client', 'question', 'plan', 'approval', 'loop', 'login', 'elicitation', "
        "'agents')",
        name=Constraint.CHAT_ACTIONS_KIND_KNOWN,
    ),
    CheckConstraint(
        "outcome IN ('answered', 'expired', 'cancelled')",
        name=Constraint.CHAT_ACTIONS_OUTCOME_KNOWN,
    ),
    CheckConstraint(
        "(ended_at IS NULL) = (outcome IS NULL)", name=Constraint.CHAT_ACTIONS_END_HAS_AN_OUTCOME
    ),
    Index("chat_actions_by_message", "chat_id", "message_id"),
    Index("chat_actions_open", "chat_id", postgresql_where=text("ended_at IS NULL")),
    Index(
        "chat_actions_ended",
        "chat_id",
        "ended_version",
        postgresql_where=text("ended_version IS NOT NULL"),
    ),
    Index(
        "chat_actions_waiting_for_agents",
        "chat_id",
        postgresql_where=text("kind = 'agents' AND ended_at IS NULL"),
    ),
)
