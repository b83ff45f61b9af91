"""The tables of chats; migrations create them, and a test compares the two."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from chatd.primitives.store.columns import (
    TransactionId,
    count_column,
    flag_column,
    id_column,
    json_column,
    metadata,
    of_chat,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

_ORIGIN_KNOWN = (
    "origin IN ('person', 'program', 'goal', 'monitor', 'schedule', 'hook', 'agent', 'system')"
)

chats = Table(
    "chats",
    metadata,
    id_column("id"),
    id_column("owner_id"),
    text_column("owner_role"),
    text_column("title"),
    flag_column("has_own_title"),
    id_column("parent_chat_id", nullable=True),
    id_column("root_chat_id"),
    text_column("model_id"),
    text_column("reasoning_effort"),
    text_column("mode"),
    id_column("workspace_id", nullable=True),
    Column("mcp_server_ids", ARRAY(UUID(as_uuid=False))),  # NULL for the default ones.
    Column("labels", JSONB, nullable=False),
    Column("pin_order", Integer, nullable=False),
    text_column("summary"),
    text_column("last_turn_summary"),
    json_column("client_tools"),
    count_column("last_read_message_id"),
    time_column("created_at"),
    Column(
        "owner_group_ids", ARRAY(UUID(as_uuid=False)), nullable=False, server_default=text("'{}'")
    ),
    Column("summarised_until", BigInteger, nullable=False, server_default=text("0")),
    Column("diff_status", JSONB, nullable=True),
    Column("instructions_drifted", Boolean, nullable=False, server_default=text("false")),
    Column("is_unattended", Boolean, nullable=False, server_default=text("false")),
    Column(
        "created_xid", TransactionId, nullable=False, server_default=text("pg_current_xact_id()")
    ),
    time_column("archives_at", nullable=True),
    time_column("purges_at", nullable=True),
    time_column("retention_noticed_at", nullable=True),
    Column("fallback_model_id", Text, nullable=False, server_default=text("''")),
    json_column("orders", nullable=True),
    PrimaryKeyConstraint("id", name=Constraint.CHATS_PKEY),
    ForeignKeyConstraint(
        ["parent_chat_id"], ["chat.chats.id"], name=Constraint.CHATS_PARENT_FKEY, ondelete="CASCADE"
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
    CheckConstraint(
        "num_nonnulls(archives_at, purges_at) = num_nonnulls(retention_noticed_at)",
        name=Constraint.CHATS_ONE_ENDING_IS_NOTICED,
    ),
    CheckConstraint(
        "retention_noticed_at IS NULL OR parent_chat_id IS NULL",
        name=Constraint.CHATS_ONLY_ROOTS_ARE_NOTICED,
    ),
    CheckConstraint("jsonb_typeof(labels) = 'object'", name=Constraint.CHATS_LABELS_ARE_AN_OBJECT),
    Index("chats_by_owner", "owner_id", "id", postgresql_where=text("parent_chat_id IS NULL")),
    Index("chats_by_root", "root_chat_id"),
    Index("chats_by_workspace", "workspace_id", postgresql_where=text("workspace_id IS NOT NULL")),
    Index("chats_by_label", "labels", postgresql_using="gin"),
)

# Separate from `chats`, because it changes with every step and must stay narrow.
chat_exec = Table(
    "chat_exec",
    metadata,
    id_column("chat_id"),
    text_column("status"),
    flag_column("archived"),
    count_column("snapshot_version"),
    count_column("history_version"),
    count_column("queue_version"),
    count_column("retry_version"),
    count_column("generation_attempt"),
    count_column("next_message_id"),
    count_column("turn_id"),
    Column("queue_length", Integer, nullable=False),
    count_column("owner_epoch"),
    id_column("worker_id", nullable=True),
    Column("takeovers", Integer, nullable=False),
    json_column("pending"),
    Column("compactions", Integer, nullable=False),
    flag_column("is_compaction_requested"),
    time_column("deadline_at", nullable=True),
    json_column("last_error", nullable=True),
    json_column("retry", nullable=True),
    time_column("changed_at"),
    Column("changed_xid", TransactionId, nullable=False),
    json_column("revert", nullable=True),
    PrimaryKeyConstraint("chat_id", name=Constraint.CHAT_EXEC_PKEY),
    of_chat(Constraint.CHAT_EXEC_CHAT_FKEY),
    CheckConstraint(
        "status IN ('waiting', 'running', 'interrupting', 'requires_action', 'error')",
        name=Constraint.CHAT_EXEC_STATUS_KNOWN,
    ),
    CheckConstraint(
        "worker_id IS NULL OR status IN ('running', 'interrupting')",
        name=Constraint.CHAT_EXEC_ONLY_RUNNERS_ARE_OWNED,
    ),
    CheckConstraint(
        "(status = 'error') = (last_error IS NOT NULL)", name=Constraint.CHAT_EXEC_ERROR_IS_TOLD
    ),
    CheckConstraint(
        "deadline_at IS NULL OR status = 'requires_action'",
        name=Constraint.CHAT_EXEC_ONLY_ACTIONS_EXPIRE,
    ),
    CheckConstraint(
        "NOT archived OR status IN ('waiting', 'error')",
        name=Constraint.CHAT_EXEC_ARCHIVED_IS_AT_REST,
    ),
    CheckConstraint(
        "status <> 'waiting' OR queue_length = 0", name=Constraint.CHAT_EXEC_WAITING_HAS_NO_QUEUE
    ),
    CheckConstraint(
        "revert IS NULL OR status = 'running'", name=Constraint.CHAT_EXEC_ONLY_RUNNERS_REVERT
    ),
    CheckConstraint("queue_length BETWEEN 0 AND 20", name=Constraint.CHAT_EXEC_QUEUE_BOUNDED),
    CheckConstraint(
        "greatest(history_version, queue_version, retry_version) <= snapshot_version",
        name=Constraint.CHAT_EXEC_VERSIONS_ORDERED,
    ),
    CheckConstraint(
        "next_message_id >= 1 AND owner_epoch >= 0 AND generation_attempt >= 0"
        " AND takeovers >= 0 AND compactions >= 0",
        name=Constraint.CHAT_EXEC_COUNTS_POSITIVE,
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
    id_column("chat_id"),
    count_column("id"),
    count_column("revision"),
    text_column("role"),
    text_column("visibility"),
    json_column("content"),
    Column("content_version", SmallInteger, nullable=False),
    flag_column("is_compressed"),
    flag_column("is_deleted"),
    text_column("created_by"),
    time_column("created_at"),
    json_column("use", nullable=True),
    json_column("choice", nullable=True),
    Column("finish_reason", Text),
    Column("origin", Text),
    PrimaryKeyConstraint("chat_id", "id", name=Constraint.CHAT_MESSAGES_PKEY),
    of_chat(Constraint.CHAT_MESSAGES_CHAT_FKEY),
    CheckConstraint(
        "role IN ('system', 'user', 'assistant', 'tool')", name=Constraint.CHAT_MESSAGES_ROLE_KNOWN
    ),
    CheckConstraint(
        "visibility IN ('user', 'model', 'both')", name=Constraint.CHAT_MESSAGES_VISIBILITY_KNOWN
    ),
    CheckConstraint(
        "content_version IN (0, 1)", name=Constraint.CHAT_MESSAGES_CONTENT_VERSION_KNOWN
    ),
    CheckConstraint(
        "use IS NULL OR role = 'assistant'", name=Constraint.CHAT_MESSAGES_ONLY_ANSWERS_COST
    ),
    CheckConstraint(
        "choice IS NULL OR role = 'user'", name=Constraint.CHAT_MESSAGES_ONLY_USERS_CHOOSE
    ),
    CheckConstraint(
        "finish_reason IN ('stop', 'tool_calls', 'length', 'content_filter', 'paused',"
        " 'interrupted', 'other')",
        name=Constraint.CHAT_MESSAGES_FINISH_REASON_KNOWN,
    ),
    CheckConstraint(
        "finish_reason IS NULL OR role = 'assistant'",
        name=Constraint.CHAT_MESSAGES_ONLY_ANSWERS_FINISH,
    ),
    CheckConstraint(_ORIGIN_KNOWN, name=Constraint.CHAT_MESSAGES_ORIGIN_KNOWN),
    CheckConstraint(
        "(role = 'user') = (origin IS NOT NULL)", name=Constraint.CHAT_MESSAGES_USERS_HAVE_ORIGINS
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
    id_column("chat_id"),
    id_column("id"),
    count_column("position"),
    json_column("content"),
    Column("content_version", SmallInteger, nullable=False),
    text_column("created_by"),
    time_column("created_at"),
    json_column("choice", nullable=True),
    text_column("origin"),
    PrimaryKeyConstraint("chat_id", "id", name=Constraint.CHAT_QUEUE_PKEY),
    of_chat(Constraint.CHAT_QUEUE_CHAT_FKEY),
    CheckConstraint(_ORIGIN_KNOWN, name=Constraint.CHAT_QUEUE_ORIGIN_KNOWN),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    id_column("execution_id"),
    id_column("chat_id"),
    count_column("message_id"),
    text_column("tool_call_id"),
    text_column("tool_name"),
    text_column("executor"),
    count_column("owner_epoch"),
    text_column("journal_generation"),
    Column("mode", Text, nullable=False, server_default=text("''")),
    Column("arguments_digest", Text, nullable=False, server_default=text("''")),
    time_column("dispatched_at"),
    time_column("finished_at", nullable=True),
    json_column("result", nullable=True),
    PrimaryKeyConstraint("execution_id", name=Constraint.TOOL_CALLS_PKEY),
    ForeignKeyConstraint(
        ["chat_id", "message_id"],
        ["chat.chat_messages.chat_id", "chat.chat_messages.id"],
        name=Constraint.TOOL_CALLS_MESSAGE_FKEY,
        ondelete="CASCADE",
    ),
    CheckConstraint(
        "executor IN ('toolrunner', 'mcpgateway', 'chatd')",
        name=Constraint.TOOL_CALLS_EXECUTOR_KNOWN,
    ),
    CheckConstraint(
        "(result IS NULL) = (finished_at IS NULL)", name=Constraint.TOOL_CALLS_RESULT_HAS_A_TIME
    ),
    Index("tool_calls_by_message", "chat_id", "message_id"),
)

cancelled_calls = Table(
    "cancelled_calls",
    metadata,
    id_column("execution_id"),
    id_column("chat_id"),
    id_column("owner_id"),
    text_column("owner_role"),
    text_column("tool_call_id"),
    text_column("tool_name"),
    text_column("executor"),
    text_column("journal_generation"),
    count_column("owner_epoch"),
    time_column("created_at"),
    time_column("try_at"),
    PrimaryKeyConstraint("execution_id", name=Constraint.CANCELLED_CALLS_PKEY),
    Index("cancelled_calls_by_time", "try_at"),
)

chat_partials = Table(
    "chat_partials",
    metadata,
    id_column("chat_id"),
    count_column("history_version"),
    count_column("generation_attempt"),
    count_column("first_seq"),
    json_column("content"),
    PrimaryKeyConstraint(
        "chat_id",
        "history_version",
        "generation_attempt",
        "first_seq",
        name=Constraint.CHAT_PARTIALS_PKEY,
    ),
    of_chat(Constraint.CHAT_PARTIALS_CHAT_FKEY),
)

client_keys = Table(
    "client_keys",
    metadata,
    id_column("chat_id"),
    text_column("key"),
    Column("body_hash", LargeBinary, nullable=False),
    count_column("snapshot_version"),
    json_column("outcome"),
    time_column("created_at"),
    PrimaryKeyConstraint("chat_id", "key", name=Constraint.CLIENT_KEYS_PKEY),
    of_chat(Constraint.CLIENT_KEYS_CHAT_FKEY),
    CheckConstraint("char_length(key) BETWEEN 1 AND 128", name=Constraint.CLIENT_KEYS_KEY_LENGTH),
    Index("client_keys_by_age", "created_at"),
)

chat_reverts = Table(
    "chat_reverts",
    metadata,
    id_column("id"),
    id_column("chat_id"),
    text_column("kind"),
    count_column("message_id"),
    flag_column("restores_files"),
    id_column("undone_id", nullable=True),
    count_column("undone_version"),
    json_column("open_calls"),
    count_column("version"),
    Column("report", LargeBinary, nullable=False),
    time_column("created_at"),
    Column("replacement_id", BigInteger, nullable=False, server_default=text("0")),
    Column("deleted_version", BigInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("id", name=Constraint.CHAT_REVERTS_PKEY),
    of_chat(Constraint.CHAT_REVERTS_CHAT_FKEY),
    CheckConstraint("kind IN ('history', 'undo', 'edit')", name=Constraint.CHAT_REVERTS_KIND_KNOWN),
    CheckConstraint(
        "(kind = 'undo') = (undone_id IS NOT NULL)",
        name=Constraint.CHAT_REVERTS_ONLY_UNDO_NAMES_ANOTHER,
    ),
    Index("chat_reverts_by_chat", "chat_id", "version"),
)

deleted_chats = Table(
    "deleted_chats",
    metadata,
    id_column("chat_id"),
    id_column("owner_id"),
    Column("changed_xid", TransactionId, nullable=False),
    time_column("deleted_at"),
    PrimaryKeyConstraint("chat_id", name=Constraint.DELETED_CHATS_PKEY),
    Index("deleted_chats_by_owner", "owner_id", "changed_xid"),
)
