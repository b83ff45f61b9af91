"""The tables of workspaces: templates, workspaces, the nodes that host them, and setup logs."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from chatd.primitives.store.columns import (
    count_column,
    flag_column,
    id_column,
    json_column,
    metadata,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

#: Unique indexes, by which a violation is recognised.

templates = Table(
    "templates",
    metadata,
    id_column("id"),
    text_column("name"),
    text_column("kind"),
    flag_column("is_for_agents"),
    Column("group_ids", ARRAY(UUID(as_uuid=False)), nullable=False),
    json_column("definition"),
    count_column("version"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    time_column("deleted_at", nullable=True),
    PrimaryKeyConstraint("id", name=Constraint.TEMPLATES_PKEY),
    CheckConstraint("kind IN ('scratch', 'git', 'local')", name=Constraint.TEMPLATES_KIND_KNOWN),
    CheckConstraint("char_length(name) BETWEEN 1 AND 64", name=Constraint.TEMPLATES_NAME_LENGTH),
    Index(
        Constraint.TEMPLATES_BY_NAME,
        "name",
        unique=True,
        postgresql_where=text("deleted_at IS NULL"),
    ),
)

workspaces = Table(
    "workspaces",
    metadata,
    id_column("id"),
    text_column("name"),
    id_column("owner_id"),
    text_column("kind"),
    id_column("template_id", nullable=True),
    text_column("template_name"),
    id_column("parent_id", nullable=True),
    json_column("spec"),
    json_column("parameters"),
    json_column("lifetime"),
    text_column("state"),
    json_column("failure", nullable=True),
    text_column("stop_reason"),
    id_column("node_id", nullable=True),
    count_column("epoch"),
    flag_column("has_files"),
    flag_column("is_removing"),
    flag_column("is_scratch_of_chat"),
    text_column("root_path"),
    text_column("git_branch"),
    text_column("sandbox_level"),
    json_column("usage", nullable=True),
    time_column("deadline_at", nullable=True),
    time_column("max_deadline_at", nullable=True),
    time_column("warned_for", nullable=True),
    time_column("last_used_at"),
    time_column("created_at"),
    time_column("started_at", nullable=True),
    time_column("stopped_at", nullable=True),
    time_column("delete_at", nullable=True),
    # With a default, because processes of the previous version still insert rows.
    Column("policy", BigInteger, nullable=False, server_default=text("0")),
    Column("policy_told", BigInteger, nullable=False, server_default=text("0")),
    count_column("version"),
    time_column("changed_at"),
    Column("request_hash", LargeBinary, nullable=False),
    id_column("driver_id", nullable=True),
    time_column("driven_until", nullable=True),
    PrimaryKeyConstraint("id", name=Constraint.WORKSPACES_PKEY),
    CheckConstraint(
        "kind IN ('scratch', 'git', 'local', 'fork')", name=Constraint.WORKSPACES_KIND_KNOWN
    ),
    CheckConstraint(
        "state IN ('pending', 'preparing', 'ready', 'busy', 'stopping', 'stopped', 'deleted',"
        " 'failed')",
        name=Constraint.WORKSPACES_STATE_KNOWN,
    ),
    CheckConstraint("char_length(name) BETWEEN 1 AND 64", name=Constraint.WORKSPACES_NAME_LENGTH),
    CheckConstraint(
        "(state = 'failed') = (failure IS NOT NULL)", name=Constraint.WORKSPACES_FAILURE_IS_TOLD
    ),
    CheckConstraint(
        "state NOT IN ('preparing', 'ready', 'busy', 'stopping') OR node_id IS NOT NULL",
        name=Constraint.WORKSPACES_LIVE_HAS_A_NODE,
    ),
    CheckConstraint(
        "(deadline_at IS NULL AND max_deadline_at IS NULL)"
        " OR state IN ('ready', 'busy', 'stopping')",
        name=Constraint.WORKSPACES_ONLY_LIVE_END,
    ),
    CheckConstraint(
        "NOT is_removing OR state = 'stopping'", name=Constraint.WORKSPACES_REMOVING_STOPS
    ),
    CheckConstraint("epoch >= 0 AND version >= 1", name=Constraint.WORKSPACES_COUNTS_POSITIVE),
    CheckConstraint(
        "driver_id IS NULL OR driven_until IS NOT NULL",
        name=Constraint.WORKSPACES_DRIVER_HAS_A_LEASE,
    ),
    Index(
        Constraint.WORKSPACES_BY_NAME,
        "owner_id",
        "name",
        unique=True,
        postgresql_where=text("state <> 'deleted'"),
    ),
    Index("workspaces_by_owner", "owner_id", "last_used_at"),
    Index(
        "workspaces_to_drive",
        "driven_until",
        postgresql_where=text("state IN ('pending', 'preparing', 'stopping')"),
    ),
    Index(
        "workspaces_by_deadline",
        "deadline_at",
        postgresql_where=text("state IN ('ready', 'busy')"),
    ),
    Index("workspaces_by_deletion", "delete_at", postgresql_where=text("state = 'stopped'")),
    Index(
        "workspaces_to_tell",
        "id",
        postgresql_where=text("state IN ('ready', 'busy') AND policy > policy_told"),
    ),
    Index("workspaces_gone", "changed_at", postgresql_where=text("state = 'deleted'")),
    Index(
        "workspaces_forked_for_chats",
        "changed_at",
        postgresql_where=text(
            "is_scratch_of_chat AND parent_id IS NOT NULL AND state <> 'deleted'"
        ),
    ),
    Index("workspaces_by_node", "node_id", postgresql_where=text("state <> 'deleted'")),
)

nodes = Table(
    "nodes",
    metadata,
    id_column("id"),
    text_column("name"),
    text_column("address"),
    text_column("state"),
    json_column("capacity"),
    json_column("load"),
    text_column("sandbox_level"),
    json_column("sandbox"),
    json_column("labels"),
    json_column("directories"),
    json_column("mirrors"),
    text_column("journal_generation"),
    count_column("registration_epoch"),
    text_column("version"),
    time_column("registered_at"),
    time_column("last_seen_at"),
    time_column("drain_at", nullable=True),
    flag_column("is_leaving"),
    text_column("request_id"),
    PrimaryKeyConstraint("id", name=Constraint.NODES_PKEY),
    CheckConstraint(
        "state IN ('active', 'draining', 'lost', 'gone')", name=Constraint.NODES_STATE_KNOWN
    ),
    CheckConstraint(
        "state <> 'draining' OR drain_at IS NOT NULL", name=Constraint.NODES_DRAIN_HAS_A_TIME
    ),
    CheckConstraint("registration_epoch >= 1", name=Constraint.NODES_COUNTS_POSITIVE),
)

workspace_logs = Table(
    "workspace_logs",
    metadata,
    id_column("workspace_id"),
    count_column("epoch"),
    count_column("sequence"),
    time_column("logged_at"),
    text_column("stage"),
    text_column("line"),
    PrimaryKeyConstraint("workspace_id", "epoch", "sequence", name=Constraint.WORKSPACE_LOGS_PKEY),
    ForeignKeyConstraint(
        ["workspace_id"],
        ["chat.workspaces.id"],
        name=Constraint.WORKSPACE_LOGS_WORKSPACE_FKEY,
        ondelete="CASCADE",
    ),
)
