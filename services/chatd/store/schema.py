"""The tables of the schema `chat`; migrations make them, and a test compares the two.

Names of constraints are written here and nowhere else: code that turns a violation into a typed
error refers to `Constraint`.
"""

from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB, UUID
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType

SCHEMA = "chat"
MIGRATIONS = Path(__file__).parent / "migrations"

metadata = MetaData(schema=SCHEMA)


class Constraint(StrEnum):
    """Every constraint of the schema by its name in the database."""

    CHATS_KEY = "chats_pkey"
    CHATS_PARENT = "chats_parent_fkey"
    CHATS_TITLE_LENGTH = "chats_title_length"
    CHATS_MODE_KNOWN = "chats_mode_known"
    CHATS_ROOT_OF_ITSELF = "chats_root_of_itself"
    CHATS_ONLY_ROOTS_ARE_PINNED = "chats_only_roots_are_pinned"
    CHATS_LABELS_ARE_AN_OBJECT = "chats_labels_are_an_object"
    WORKERS_KEY = "workers_pkey"
    EXEC_KEY = "chat_exec_pkey"
    EXEC_CHAT = "chat_exec_chat_fkey"
    EXEC_STATUS_KNOWN = "chat_exec_status_known"
    EXEC_ONLY_RUNNERS_ARE_OWNED = "chat_exec_only_runners_are_owned"
    EXEC_ERROR_IS_TOLD = "chat_exec_error_is_told"
    EXEC_ACTION_HAS_A_DEADLINE = "chat_exec_action_has_a_deadline"
    EXEC_ARCHIVED_IS_AT_REST = "chat_exec_archived_is_at_rest"
    EXEC_WAITING_HAS_NO_QUEUE = "chat_exec_waiting_has_no_queue"
    EXEC_QUEUE_BOUNDED = "chat_exec_queue_bounded"
    EXEC_VERSIONS_ORDERED = "chat_exec_versions_ordered"
    EXEC_COUNTS_POSITIVE = "chat_exec_counts_positive"
    MESSAGES_KEY = "chat_messages_pkey"
    MESSAGES_CHAT = "chat_messages_chat_fkey"
    MESSAGES_ROLE_KNOWN = "chat_messages_role_known"
    MESSAGES_VISIBILITY_KNOWN = "chat_messages_visibility_known"
    MESSAGES_CONTENT_VERSION_KNOWN = "chat_messages_content_version_known"
    MESSAGES_ONLY_ANSWERS_COST = "chat_messages_only_answers_cost"
    QUEUE_KEY = "chat_queue_pkey"
    QUEUE_CHAT = "chat_queue_chat_fkey"
    TOOL_CALLS_KEY = "tool_calls_pkey"
    TOOL_CALLS_MESSAGE = "tool_calls_message_fkey"
    TOOL_CALLS_EXECUTOR_KNOWN = "tool_calls_executor_known"
    TOOL_CALLS_RESULT_HAS_A_TIME = "tool_calls_result_has_a_time"
    PARTIALS_KEY = "chat_partials_pkey"
    PARTIALS_CHAT = "chat_partials_chat_fkey"
    CLIENT_KEYS_KEY = "client_keys_pkey"
    CLIENT_KEYS_CHAT = "client_keys_chat_fkey"
    CLIENT_KEYS_LENGTH = "client_keys_key_length"
    SHARES_KEY = "chat_shares_pkey"
    SHARES_CHAT = "chat_shares_chat_fkey"
    SHARES_KIND_KNOWN = "chat_shares_kind_known"
    FILES_KEY = "files_pkey"
    FILES_SIZE_BOUNDED = "files_size_bounded"
    FILES_NAME_BOUNDED = "files_name_bounded"
    CHAT_FILES_KEY = "chat_files_pkey"
    CHAT_FILES_CHAT = "chat_files_chat_fkey"
    CHAT_FILES_FILE = "chat_files_file_fkey"
    USAGE_KEY = "usage_pkey"
    USAGE_COUNTS_POSITIVE = "usage_counts_positive"
    USAGE_COST_POSITIVE = "usage_cost_positive"
    SETTINGS_KEY = "settings_pkey"
    BARRED_USERS_KEY = "barred_users_pkey"
    KEY_FINGERPRINTS_KEY = "key_fingerprints_pkey"


class TransactionId(UserDefinedType[str]):
    """PostgreSQL's xid8, which SQLAlchemy does not know."""

    cache_ok = True

    def get_col_spec(self, **kw: object) -> str:
        """Return the type's name in SQL."""
        return "xid8"


# Reflection asks this table, and warns about types that it does not find.
ischema_names["xid8"] = TransactionId


def _id(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, UUID(as_uuid=False), nullable=nullable)


def _text(name: str) -> Column[Any]:
    return Column(name, Text, nullable=False)


def _count(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False)


def _flag(name: str) -> Column[Any]:
    return Column(name, Boolean, nullable=False)


def _time(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


# json, not jsonb: a prompt rebuilt from here has the bytes of the one that was sent before.
def _json(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, JSON, nullable=nullable)


def _of_chat(name: Constraint) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["chat_id"], ["chat.chats.id"], name=name, ondelete="CASCADE")


chats = Table(
    "chats",
    metadata,
    _id("id"),
    _id("owner_id"),
    _text("owner_role"),
    _text("title"),
    _flag("has_own_title"),
    _id("parent_chat_id", nullable=True),
    _id("root_chat_id"),
    _text("model_id"),
    _text("reasoning_effort"),
    _text("mode"),
    _id("workspace_id", nullable=True),
    Column("mcp_server_ids", ARRAY(UUID(as_uuid=False)), nullable=False),
    Column("labels", JSONB, nullable=False),
    Column("pin_order", Integer, nullable=False),
    _text("summary"),
    _text("last_turn_summary"),
    _json("client_tools"),
    _count("last_read_message_id"),
    _time("created_at"),
    PrimaryKeyConstraint("id", name=Constraint.CHATS_KEY),
    ForeignKeyConstraint(
        ["parent_chat_id"], ["chat.chats.id"], name=Constraint.CHATS_PARENT, ondelete="CASCADE"
    ),
    CheckConstraint("char_length(title) BETWEEN 1 AND 200", name=Constraint.CHATS_TITLE_LENGTH),
    CheckConstraint("mode IN ('', 'plan', 'explore')", name=Constraint.CHATS_MODE_KNOWN),
    CheckConstraint(
        "(parent_chat_id IS NULL) = (root_chat_id = id)", name=Constraint.CHATS_ROOT_OF_ITSELF
    ),
    CheckConstraint(
        "pin_order = 0 OR (pin_order > 0 AND parent_chat_id IS NULL)",
        name=Constraint.CHATS_ONLY_ROOTS_ARE_PINNED,
    ),
    CheckConstraint("jsonb_typeof(labels) = 'object'", name=Constraint.CHATS_LABELS_ARE_AN_OBJECT),
    Index("chats_by_owner", "owner_id", "id", postgresql_where=text("parent_chat_id IS NULL")),
    Index("chats_by_root", "root_chat_id"),
    Index("chats_by_label", "labels", postgresql_using="gin"),
)

workers = Table(
    "workers",
    metadata,
    _id("id"),
    _text("address"),
    _flag("is_draining"),
    _time("lease_until"),
    _time("started_at"),
    PrimaryKeyConstraint("id", name=Constraint.WORKERS_KEY),
)

# Apart from `chats`, because it changes with every step and must stay narrow.
chat_exec = Table(
    "chat_exec",
    metadata,
    _id("chat_id"),
    _text("status"),
    _flag("archived"),
    _count("snapshot_version"),
    _count("history_version"),
    _count("queue_version"),
    _count("retry_version"),
    _count("generation_attempt"),
    _count("next_message_id"),
    _count("turn_id"),
    Column("queue_length", Integer, nullable=False),
    _count("owner_epoch"),
    _id("worker_id", nullable=True),
    Column("takeovers", Integer, nullable=False),
    _json("pending"),
    Column("compactions", Integer, nullable=False),
    _flag("is_compaction_requested"),
    _time("deadline_at", nullable=True),
    _json("last_error", nullable=True),
    _json("retry", nullable=True),
    _time("changed_at"),
    Column("changed_xid", TransactionId, nullable=False),
    PrimaryKeyConstraint("chat_id", name=Constraint.EXEC_KEY),
    _of_chat(Constraint.EXEC_CHAT),
    CheckConstraint(
        "status IN ('waiting', 'running', 'interrupting', 'requires_action', 'error')",
        name=Constraint.EXEC_STATUS_KNOWN,
    ),
    CheckConstraint(
        "worker_id IS NULL OR status IN ('running', 'interrupting')",
        name=Constraint.EXEC_ONLY_RUNNERS_ARE_OWNED,
    ),
    CheckConstraint(
        "(status = 'error') = (last_error IS NOT NULL)", name=Constraint.EXEC_ERROR_IS_TOLD
    ),
    CheckConstraint(
        "(status = 'requires_action') = (deadline_at IS NOT NULL)",
        name=Constraint.EXEC_ACTION_HAS_A_DEADLINE,
    ),
    CheckConstraint(
        "NOT archived OR status IN ('waiting', 'error')", name=Constraint.EXEC_ARCHIVED_IS_AT_REST
    ),
    CheckConstraint(
        "status <> 'waiting' OR queue_length = 0", name=Constraint.EXEC_WAITING_HAS_NO_QUEUE
    ),
    CheckConstraint("queue_length BETWEEN 0 AND 20", name=Constraint.EXEC_QUEUE_BOUNDED),
    CheckConstraint(
        "greatest(history_version, queue_version, retry_version) <= snapshot_version",
        name=Constraint.EXEC_VERSIONS_ORDERED,
    ),
    CheckConstraint(
        "next_message_id >= 1 AND owner_epoch >= 0 AND generation_attempt >= 0"
        " AND takeovers >= 0 AND compactions >= 0",
        name=Constraint.EXEC_COUNTS_POSITIVE,
    ),
    Index(
        "chat_exec_to_run",
        "worker_id",
        "changed_at",
        postgresql_where=text("status IN ('running', 'interrupting')"),
    ),
    Index("chat_exec_by_deadline", "deadline_at", postgresql_where=text("deadline_at IS NOT NULL")),
    Index("chat_exec_by_change", "changed_xid"),
)

chat_messages = Table(
    "chat_messages",
    metadata,
    _id("chat_id"),
    _count("id"),
    _count("revision"),
    _text("role"),
    _text("visibility"),
    _json("content"),
    Column("content_version", SmallInteger, nullable=False),
    _flag("is_compressed"),
    _flag("is_deleted"),
    _text("created_by"),
    _time("created_at"),
    _json("use", nullable=True),
    PrimaryKeyConstraint("chat_id", "id", name=Constraint.MESSAGES_KEY),
    _of_chat(Constraint.MESSAGES_CHAT),
    CheckConstraint(
        "role IN ('system', 'user', 'assistant', 'tool')", name=Constraint.MESSAGES_ROLE_KNOWN
    ),
    CheckConstraint(
        "visibility IN ('user', 'model', 'both')", name=Constraint.MESSAGES_VISIBILITY_KNOWN
    ),
    CheckConstraint("content_version IN (0, 1)", name=Constraint.MESSAGES_CONTENT_VERSION_KNOWN),
    CheckConstraint(
        "use IS NULL OR role = 'assistant'", name=Constraint.MESSAGES_ONLY_ANSWERS_COST
    ),
    Index("chat_messages_by_revision", "chat_id", "revision"),
    Index(
        "chat_messages_boundary",
        "chat_id",
        text("id DESC"),
        postgresql_where=text("is_compressed AND visibility = 'model' AND NOT is_deleted"),
    ),
)

chat_queue = Table(
    "chat_queue",
    metadata,
    _id("chat_id"),
    _id("id"),
    _count("position"),
    _json("content"),
    Column("content_version", SmallInteger, nullable=False),
    _text("created_by"),
    _time("created_at"),
    PrimaryKeyConstraint("chat_id", "id", name=Constraint.QUEUE_KEY),
    _of_chat(Constraint.QUEUE_CHAT),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    _id("execution_id"),
    _id("chat_id"),
    _count("message_id"),
    _text("tool_call_id"),
    _text("tool_name"),
    _text("executor"),
    _count("owner_epoch"),
    _text("journal_generation"),
    _time("dispatched_at"),
    _time("finished_at", nullable=True),
    _json("result", nullable=True),
    PrimaryKeyConstraint("execution_id", name=Constraint.TOOL_CALLS_KEY),
    ForeignKeyConstraint(
        ["chat_id", "message_id"],
        ["chat.chat_messages.chat_id", "chat.chat_messages.id"],
        name=Constraint.TOOL_CALLS_MESSAGE,
        ondelete="CASCADE",
    ),
    CheckConstraint(
        "executor IN ('toolrunner', 'mcpgateway')", name=Constraint.TOOL_CALLS_EXECUTOR_KNOWN
    ),
    CheckConstraint(
        "(result IS NULL) = (finished_at IS NULL)", name=Constraint.TOOL_CALLS_RESULT_HAS_A_TIME
    ),
    Index("tool_calls_by_message", "chat_id", "message_id"),
)

chat_partials = Table(
    "chat_partials",
    metadata,
    _id("chat_id"),
    _count("history_version"),
    _count("generation_attempt"),
    _count("first_seq"),
    _json("content"),
    PrimaryKeyConstraint(
        "chat_id",
        "history_version",
        "generation_attempt",
        "first_seq",
        name=Constraint.PARTIALS_KEY,
    ),
    _of_chat(Constraint.PARTIALS_CHAT),
)

client_keys = Table(
    "client_keys",
    metadata,
    _id("chat_id"),
    _text("key"),
    Column("body_hash", LargeBinary, nullable=False),
    _count("snapshot_version"),
    _json("outcome"),
    _time("created_at"),
    PrimaryKeyConstraint("chat_id", "key", name=Constraint.CLIENT_KEYS_KEY),
    _of_chat(Constraint.CLIENT_KEYS_CHAT),
    CheckConstraint("char_length(key) BETWEEN 1 AND 128", name=Constraint.CLIENT_KEYS_LENGTH),
    Index("client_keys_by_age", "created_at"),
)

chat_shares = Table(
    "chat_shares",
    metadata,
    _id("chat_id"),
    _text("grantee_kind"),
    _id("grantee_id"),
    _time("created_at"),
    PrimaryKeyConstraint("chat_id", "grantee_kind", "grantee_id", name=Constraint.SHARES_KEY),
    _of_chat(Constraint.SHARES_CHAT),
    CheckConstraint("grantee_kind IN ('user', 'group')", name=Constraint.SHARES_KIND_KNOWN),
    Index("chat_shares_by_grantee", "grantee_id", "chat_id"),
)

files = Table(
    "files",
    metadata,
    _id("id"),
    _id("owner_id"),
    _text("name"),
    _text("media_type"),
    Column("sha256", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
    _time("created_at"),
    PrimaryKeyConstraint("id", name=Constraint.FILES_KEY),
    CheckConstraint(
        "octet_length(data) BETWEEN 1 AND 10485760", name=Constraint.FILES_SIZE_BOUNDED
    ),
    CheckConstraint("octet_length(name) BETWEEN 1 AND 255", name=Constraint.FILES_NAME_BOUNDED),
)

chat_files = Table(
    "chat_files",
    metadata,
    _id("chat_id"),
    _id("file_id"),
    PrimaryKeyConstraint("chat_id", "file_id", name=Constraint.CHAT_FILES_KEY),
    _of_chat(Constraint.CHAT_FILES_CHAT),
    ForeignKeyConstraint(
        ["file_id"], ["chat.files.id"], name=Constraint.CHAT_FILES_FILE, ondelete="RESTRICT"
    ),
)

# No reference to chats: what a chat cost stays counted after it is gone.
usage = Table(
    "usage",
    metadata,
    _id("id"),
    _id("chat_id"),
    _id("root_chat_id"),
    _id("owner_id"),
    _text("purpose"),
    _text("provider"),
    _text("model"),
    _text("outcome"),
    _count("input_tokens"),
    _count("output_tokens"),
    _count("reasoning_tokens"),
    _count("cache_read_tokens"),
    _count("cache_write_tokens"),
    Column("input_price", Numeric),
    Column("output_price", Numeric),
    Column("cache_read_price", Numeric),
    Column("cache_write_price", Numeric),
    Column("cost_micros", BigInteger),
    _count("model_runtime_ms"),
    _time("created_at"),
    PrimaryKeyConstraint("id", name=Constraint.USAGE_KEY),
    CheckConstraint(
        "least(input_tokens, output_tokens, reasoning_tokens, cache_read_tokens,"
        " cache_write_tokens, model_runtime_ms) >= 0",
        name=Constraint.USAGE_COUNTS_POSITIVE,
    ),
    CheckConstraint("cost_micros >= 0", name=Constraint.USAGE_COST_POSITIVE),
    Index("usage_by_owner", "owner_id", "created_at"),
    Index("usage_by_root", "root_chat_id"),
)

settings = Table(
    "settings",
    metadata,
    _id("scope"),
    _text("name"),
    _json("value"),
    PrimaryKeyConstraint("scope", "name", name=Constraint.SETTINGS_KEY),
)

barred_users = Table(
    "barred_users",
    metadata,
    _id("user_id"),
    _flag("is_deleted"),
    _time("barred_at"),
    PrimaryKeyConstraint("user_id", name=Constraint.BARRED_USERS_KEY),
)

key_fingerprints = Table(
    "key_fingerprints",
    metadata,
    _text("key_id"),
    Column("fingerprint", Text, nullable=False),
    PrimaryKeyConstraint("key_id", name=Constraint.KEY_FINGERPRINTS_KEY),
)
