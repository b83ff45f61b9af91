"""The tables of the schema `mcp`; migrations create them, and a test compares the two."""

from pathlib import Path

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
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from mcpgateway.servers.constraints import Constraint
from parley.audit_log.tables import outbox_table

SCHEMA = "mcp"
MIGRATIONS = Path(__file__).parents[1] / "migrations"

metadata = MetaData(schema=SCHEMA)

# Events that wait for the audit log of the gateway.
audit_outbox = outbox_table(metadata)


def _of_server(name: Constraint) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["server_id"], ["mcp.servers.id"], name=name, ondelete="CASCADE")


servers = Table(
    "servers",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("slug", Text, nullable=False),
    Column("display_name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("icon", Text, nullable=False),
    Column("transport", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("auth_kind", Text, nullable=False),
    Column("oauth", JSONB),
    Column("api_key_header", Text, nullable=False),
    Column("tool_allow_list", ARRAY(Text), nullable=False),
    Column("tool_deny_list", ARRAY(Text), nullable=False),
    Column("availability", Text, nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    Column("allow_in_plan_mode", Boolean, nullable=False),
    Column("is_trusted", Boolean, nullable=False),
    Column("is_stateful", Boolean, nullable=False),
    Column("approval_policy", Text, nullable=False),
    Column("limits", JSONB, nullable=False),
    Column("credentials", LargeBinary),
    Column("credentials_key_id", Text),
    Column("header_names", ARRAY(Text), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("user_ids", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("group_ids", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("is_required", Boolean, nullable=False, server_default=text("false")),
    Column("pin_policy", Text, nullable=False, server_default=text("'quarantine'")),
    Column("user_values", JSONB, nullable=False, server_default=text("'[]'")),
    Column("tool_search", Text, nullable=False, server_default=text("'automatic'")),
    UniqueConstraint("slug", name=Constraint.SERVERS_SLUG_UNIQUE),
    CheckConstraint(
        "slug ~ '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$'", name=Constraint.SERVERS_SLUG_FORM
    ),
    CheckConstraint(
        "transport IN ('streamable_http', 'sse')", name=Constraint.SERVERS_TRANSPORT_KNOWN
    ),
    CheckConstraint(
        "auth_kind IN ('none', 'oauth2', 'api_key', 'custom_headers')",
        name=Constraint.SERVERS_AUTH_KIND_KNOWN,
    ),
    CheckConstraint(
        "availability IN ('force_on', 'default_on', 'default_off')",
        name=Constraint.SERVERS_AVAILABILITY_KNOWN,
    ),
    CheckConstraint(
        "approval_policy IN ('never', 'destructive', 'always')",
        name=Constraint.SERVERS_APPROVAL_POLICY_KNOWN,
    ),
    CheckConstraint(
        "pin_policy IN ('off', 'quarantine')", name=Constraint.SERVERS_PIN_POLICY_KNOWN
    ),
    CheckConstraint(
        "tool_search IN ('automatic', 'always', 'never')", name=Constraint.SERVERS_TOOL_SEARCH_KNOWN
    ),
    CheckConstraint(
        "(credentials IS NULL) = (credentials_key_id IS NULL)",
        name=Constraint.SERVERS_CREDENTIALS_WHOLE,
    ),
    Index("servers_by_display_name", "display_name", "id"),
)

# Values that users give for headers of servers.
user_values = Table(
    "user_values",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("server_id", UUID(as_uuid=False), nullable=False),
    Column("user_id", Text, nullable=False),
    Column("header_names", ARRAY(Text), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    UniqueConstraint("user_id", "server_id", name=Constraint.USER_VALUES_OWNER_UNIQUE),
    _of_server(Constraint.USER_VALUES_SERVER_FKEY),
)

# Clients that authorization servers registered for us.
oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("server_id", UUID(as_uuid=False), nullable=False),
    Column("issuer", Text, nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("client_id", Text, nullable=False),
    Column("auth_method", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("registered_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    UniqueConstraint(
        "server_id", "issuer", "redirect_uri", name=Constraint.OAUTH_CLIENTS_ISSUER_UNIQUE
    ),
    CheckConstraint(
        "auth_method IN ('none', 'client_secret_basic', 'client_secret_post')",
        name=Constraint.OAUTH_CLIENTS_AUTH_METHOD_KNOWN,
    ),
    _of_server(Constraint.OAUTH_CLIENTS_SERVER_FKEY),
)

# Logins that were begun.
oauth_flows = Table(
    "oauth_flows",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("state_sha256", LargeBinary, nullable=False),
    Column("server_id", UUID(as_uuid=False), nullable=False),
    Column("user_id", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("browser_sha256", LargeBinary, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("consumed_at", DateTime(timezone=True)),
    Column("consumed_by", Text, nullable=False, server_default=text("''")),
    Column("completed_at", DateTime(timezone=True)),
    UniqueConstraint("state_sha256", name=Constraint.OAUTH_FLOWS_STATE_UNIQUE),
    CheckConstraint(
        "octet_length(state_sha256) = 32 AND octet_length(browser_sha256) = 32",
        name=Constraint.OAUTH_FLOWS_HASHES_WHOLE,
    ),
    _of_server(Constraint.OAUTH_FLOWS_SERVER_FKEY),
    Index("oauth_flows_by_user", "user_id", "server_id", "created_at"),
    Index("oauth_flows_by_expiry", "expires_at"),
)

# What users may do at servers; one row per user and server.
grants = Table(
    "grants",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("server_id", UUID(as_uuid=False), nullable=False),
    Column("user_id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("terms", JSONB, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("refresh_at", DateTime(timezone=True)),
    Column("refreshing_until", DateTime(timezone=True)),
    # The process that renews it.
    Column("refreshing_by", UUID(as_uuid=False)),
    Column("granted_scopes", ARRAY(Text), nullable=False),
    Column("missing_scopes", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("failure", Text, nullable=False, server_default=text("''")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    UniqueConstraint("user_id", "server_id", name=Constraint.GRANTS_OWNER_UNIQUE),
    CheckConstraint(
        "failure IN ('', 'refresh_refused', 'token_refused', 'client_refused')",
        name=Constraint.GRANTS_FAILURE_KNOWN,
    ),
    _of_server(Constraint.GRANTS_SERVER_FKEY),
)

# Definitions of tools that were seen; those that are not approved are quarantined.
tool_definitions = Table(
    "tool_definitions",
    metadata,
    Column("server_id", UUID(as_uuid=False), nullable=False),
    Column("tool", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("input_schema", Text, nullable=False),
    Column("is_approved", Boolean, nullable=False),
    Column("approved_by", Text, nullable=False, server_default=text("''")),
    Column("first_seen_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("server_id", "tool", "digest", name=Constraint.TOOL_DEFINITIONS_PKEY),
    _of_server(Constraint.TOOL_DEFINITIONS_SERVER_FKEY),
)

# What servers offered users last, in the form of one version of mcpgateway.
catalogues = Table(
    "catalogues",
    metadata,
    Column("server_id", UUID(as_uuid=False), nullable=False),
    Column("user_id", Text, nullable=False),
    Column("server_version", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("fetched_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("server_id", "user_id", name=Constraint.CATALOGUES_PKEY),
    _of_server(Constraint.CATALOGUES_SERVER_FKEY),
    Index("catalogues_by_age", "fetched_at"),
    Index("catalogues_by_user", "user_id"),
)

server_health = Table(
    "server_health",
    metadata,
    Column("server_id", UUID(as_uuid=False), primary_key=True),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("last_ok_at", DateTime(timezone=True)),
    Column("last_error_at", DateTime(timezone=True)),
    Column("tool_count", Integer, nullable=False),
    _of_server(Constraint.SERVER_HEALTH_SERVER_FKEY),
)

# What admins changed; it outlives the server.
server_changes = Table(
    "server_changes",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("server_id", UUID(as_uuid=False), nullable=False),
    Column("user_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("fields", JSONB, nullable=False),
    Column("changed_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint(
        "kind IN ('created', 'updated', 'deleted', 'tools_approved')",
        name=Constraint.SERVER_CHANGES_KIND_KNOWN,
    ),
    Index("server_changes_by_server", "server_id", "id"),
)

# The record of finished calls, without arguments and results; it outlives the journal's rows.
recorded_calls = Table(
    "recorded_calls",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("server_id", Text, nullable=False),
    Column("slug", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("chat_id", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("original_bytes", BigInteger, nullable=False),
    CheckConstraint(
        "outcome IN ('succeeded', 'tool_error', 'failed', 'cancelled', 'timed_out', 'unknown')",
        name=Constraint.RECORDED_CALLS_OUTCOME_KNOWN,
    ),
    Index("recorded_calls_by_time", "started_at", "execution_id"),
    Index("recorded_calls_by_user", "user_id", "started_at", "execution_id"),
)

# The results of repeated requests.
requests = Table(
    "requests",
    metadata,
    Column("caller", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("server_id", UUID(as_uuid=False), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("caller", "request_id", name=Constraint.REQUESTS_PKEY),
)

# The keys that secrets here were encrypted with, so that a wrong key file is detected at start.
keys = Table(
    "keys",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
)

# One row: the identity of this journal, new when the journal is recreated.
journal = Table(
    "journal",
    metadata,
    Column("is_only", Boolean, primary_key=True, server_default=text("true")),
    Column("generation", Text, nullable=False),
    CheckConstraint("is_only", name=Constraint.JOURNAL_HAS_ONE_ROW),
)

gateways = Table(
    "gateways",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("lease_expires_at", DateTime(timezone=True), nullable=False),
)

chat_owners = Table(
    "chat_owners",
    metadata,
    Column("chat_id", Text, primary_key=True),
    Column("owner_epoch", BigInteger, nullable=False),
    Column("changed_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)

calls = Table(
    "calls",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("chat_id", Text, nullable=False),
    Column("owner_epoch", BigInteger, nullable=False),
    Column("sha256", LargeBinary),
    # No foreign keys: a call outlives its server and the process that made it.
    Column("server_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("gateway_id", UUID(as_uuid=False)),
    Column("started_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("cancel_requested_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
    Column("acknowledged_at", DateTime(timezone=True)),
    # When its tombstone was stored; the row is deleted somewhat later.
    Column("pruned_at", DateTime(timezone=True)),
    Column("outcome", Text),
    Column("reason", Text),
    Column("message", Text, nullable=False, server_default=text("''")),
    Column("may_have_executed", Boolean, nullable=False, server_default=text("true")),
    Column("retry_after_ms", BigInteger, nullable=False, server_default=text("0")),
    Column("original_bytes", BigInteger, nullable=False, server_default=text("0")),
    Column("parts", LargeBinary),
    # What it asks and what was answered, until the call goes on.
    Column("question_id", Text),
    Column("question", LargeBinary),
    Column("answer", LargeBinary),
    CheckConstraint(
        "(question_id IS NULL) = (question IS NULL)", name=Constraint.CALLS_QUESTION_IS_WHOLE
    ),
    CheckConstraint(
        "answer IS NULL OR question_id IS NOT NULL", name=Constraint.CALLS_ANSWER_HAS_QUESTION
    ),
    CheckConstraint(
        "finished_at IS NULL OR question_id IS NULL", name=Constraint.CALLS_QUESTION_BEFORE_END
    ),
    CheckConstraint(
        "outcome IN ('succeeded', 'tool_error', 'failed', 'cancelled', 'timed_out', 'unknown')",
        name=Constraint.CALLS_OUTCOME_KNOWN,
    ),
    CheckConstraint(
        "(finished_at IS NULL) = (outcome IS NULL)", name=Constraint.CALLS_END_IS_WHOLE
    ),
    CheckConstraint(
        "acknowledged_at IS NULL OR (finished_at IS NOT NULL AND parts IS NULL)",
        name=Constraint.CALLS_ACKNOWLEDGED_AFTER_END,
    ),
    CheckConstraint(
        "finished_at IS NOT NULL OR gateway_id IS NOT NULL", name=Constraint.CALLS_RUNNING_SOMEWHERE
    ),
    Index("calls_running", "gateway_id", postgresql_where=text("finished_at IS NULL")),
    Index(
        "calls_running_by_server",
        "server_id",
        "user_id",
        postgresql_where=text("finished_at IS NULL"),
    ),
    Index("calls_to_drop", "acknowledged_at", postgresql_where=text("acknowledged_at IS NOT NULL")),
)

# Ids of deleted calls, so that none of them can start again: 16 bytes of a hash of caller and id.
tombstones = Table("tombstones", metadata, Column("digest", UUID(as_uuid=False), primary_key=True))
