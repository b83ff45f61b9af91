"""The tables of the schema `chat`; migrations make them, and a test compares the two."""

from pathlib import Path

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
)
from sqlalchemy.dialects.postgresql import JSON, UUID

SCHEMA = "chat"
MIGRATIONS = Path(__file__).parent / "migrations"

metadata = MetaData(schema=SCHEMA)

chats = Table(
    "chats",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("owner_id", UUID(as_uuid=False), nullable=False),
    Column("title", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index("chats_by_owner", "owner_id", "id"),
)

# Apart from `chats`, because it changes with every step and must stay narrow.
chat_exec = Table(
    "chat_exec",
    metadata,
    Column(
        "chat_id",
        UUID(as_uuid=False),
        ForeignKey("chat.chats.id", name="chat_exec_chat_id_fkey", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("status", Text, nullable=False),
    Column("snapshot_version", BigInteger, nullable=False),
    Column("history_version", BigInteger, nullable=False),
    Column("generation_attempt", BigInteger, nullable=False),
    Column("next_message_id", BigInteger, nullable=False),
    Column("owner_epoch", BigInteger, nullable=False),
    Column("worker_id", UUID(as_uuid=False)),
    Column("last_error", JSON),
    Column("changed_at", DateTime(timezone=True), nullable=False),
    CheckConstraint(
        "status IN ('waiting', 'running', 'interrupting', 'requires_action', 'error')",
        name="chat_exec_status_known",
    ),
    CheckConstraint(
        "status IN ('running', 'interrupting') OR (worker_id IS NULL AND generation_attempt = 0)",
        name="chat_exec_rest_has_no_owner",
    ),
    CheckConstraint(
        "(status = 'error') = (last_error IS NOT NULL)", name="chat_exec_error_is_told"
    ),
    CheckConstraint("history_version <= snapshot_version", name="chat_exec_versions_ordered"),
)

chat_messages = Table(
    "chat_messages",
    metadata,
    Column(
        "chat_id",
        UUID(as_uuid=False),
        ForeignKey("chat.chats.id", name="chat_messages_chat_id_fkey", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("id", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("role", Text, nullable=False),
    # json, not jsonb: a prompt rebuilt from here has the bytes of the one that was sent before.
    Column("content", JSON, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("chat_id", "id", name="chat_messages_pkey"),
    CheckConstraint(
        "role IN ('system', 'user', 'assistant', 'tool')", name="chat_messages_role_known"
    ),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("execution_id", UUID(as_uuid=False), primary_key=True),
    Column("chat_id", UUID(as_uuid=False), nullable=False),
    Column("message_id", BigInteger, nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("executor", Text, nullable=False),
    Column("owner_epoch", BigInteger, nullable=False),
    Column("journal_generation", Text, nullable=False),
    Column("dispatched_at", DateTime(timezone=True), nullable=False),
    ForeignKeyConstraint(
        ["chat_id", "message_id"],
        ["chat.chat_messages.chat_id", "chat.chat_messages.id"],
        name="tool_calls_message_fkey",
        ondelete="CASCADE",
    ),
    CheckConstraint("executor IN ('toolrunner', 'mcpgateway')", name="tool_calls_executor_known"),
    Index("tool_calls_by_message", "chat_id", "message_id"),
)
