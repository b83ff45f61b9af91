"""Workspaces: templates, workspaces, nodes, setup logs, and the template that chats begin with."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE chat.templates (
    id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    is_for_agents boolean NOT NULL,
    group_ids uuid[] NOT NULL,
    definition json NOT NULL,
    version bigint NOT NULL,
    request_hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz,
    CONSTRAINT templates_pkey PRIMARY KEY (id),
    CONSTRAINT templates_kind_known CHECK (kind IN ('scratch', 'git', 'local')),
    CONSTRAINT templates_name_length CHECK (char_length(name) BETWEEN 1 AND 64)
);
CREATE UNIQUE INDEX templates_by_name ON chat.templates (name) WHERE deleted_at IS NULL;

CREATE TABLE chat.workspaces (
    id uuid NOT NULL,
    name text NOT NULL,
    owner_id uuid NOT NULL,
    kind text NOT NULL,
    template_id uuid,
    template_name text NOT NULL,
    parent_id uuid,
    recipe json NOT NULL,
    parameters json NOT NULL,
    lifetime json NOT NULL,
    state text NOT NULL,
    failure json,
    stop_reason text NOT NULL,
    node_id uuid,
    epoch bigint NOT NULL,
    has_files boolean NOT NULL,
    is_removing boolean NOT NULL,
    is_scratch_of_chat boolean NOT NULL,
    root_path text NOT NULL,
    git_branch text NOT NULL,
    sandbox_level text NOT NULL,
    usage json,
    deadline_at timestamptz,
    max_deadline_at timestamptz,
    warned_for timestamptz,
    last_used_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    stopped_at timestamptz,
    delete_at timestamptz,
    version bigint NOT NULL,
    changed_at timestamptz NOT NULL,
    request_hash bytea NOT NULL,
    driver_id uuid,
    driven_until timestamptz,
    CONSTRAINT workspaces_pkey PRIMARY KEY (id),
    CONSTRAINT workspaces_kind_known CHECK (kind IN ('scratch', 'git', 'local', 'fork')),
    CONSTRAINT workspaces_state_known CHECK (state IN ('pending', 'preparing', 'ready', 'busy',
        'stopping', 'stopped', 'deleted', 'failed')),
    CONSTRAINT workspaces_name_length CHECK (char_length(name) BETWEEN 1 AND 64),
    CONSTRAINT workspaces_failure_is_told CHECK ((state = 'failed') = (failure IS NOT NULL)),
    CONSTRAINT workspaces_live_has_a_node CHECK (
        state NOT IN ('preparing', 'ready', 'busy', 'stopping') OR node_id IS NOT NULL),
    CONSTRAINT workspaces_only_live_end CHECK (
        (deadline_at IS NULL AND max_deadline_at IS NULL)
        OR state IN ('ready', 'busy', 'stopping')),
    CONSTRAINT workspaces_removing_stops CHECK (NOT is_removing OR state = 'stopping'),
    CONSTRAINT workspaces_counts_positive CHECK (epoch >= 0 AND version >= 1),
    CONSTRAINT workspaces_driver_has_a_lease CHECK (driver_id IS NULL OR driven_until IS NOT NULL)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX workspaces_by_name ON chat.workspaces (owner_id, name)
    WHERE state <> 'deleted';
CREATE INDEX workspaces_by_owner ON chat.workspaces (owner_id, last_used_at);
CREATE INDEX workspaces_to_drive ON chat.workspaces (driven_until)
    WHERE state IN ('pending', 'preparing', 'stopping');
CREATE INDEX workspaces_by_deadline ON chat.workspaces (deadline_at)
    WHERE state IN ('ready', 'busy');
CREATE INDEX workspaces_by_deletion ON chat.workspaces (delete_at) WHERE state = 'stopped';
CREATE INDEX workspaces_by_node ON chat.workspaces (node_id) WHERE state <> 'deleted';

CREATE TABLE chat.nodes (
    id uuid NOT NULL,
    name text NOT NULL,
    address text NOT NULL,
    state text NOT NULL,
    capacity json NOT NULL,
    load json NOT NULL,
    sandbox_level text NOT NULL,
    sandbox json NOT NULL,
    labels json NOT NULL,
    directories json NOT NULL,
    mirrors json NOT NULL,
    journal_generation text NOT NULL,
    registration_epoch bigint NOT NULL,
    version text NOT NULL,
    registered_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    drain_at timestamptz,
    is_leaving boolean NOT NULL,
    request_id text NOT NULL,
    CONSTRAINT nodes_pkey PRIMARY KEY (id),
    CONSTRAINT nodes_state_known CHECK (state IN ('active', 'draining', 'lost', 'gone')),
    CONSTRAINT nodes_drain_has_a_time CHECK (state <> 'draining' OR drain_at IS NOT NULL),
    CONSTRAINT nodes_counts_positive CHECK (registration_epoch >= 1)
);

CREATE TABLE chat.workspace_logs (
    workspace_id uuid NOT NULL
        CONSTRAINT workspace_logs_workspace_fkey REFERENCES chat.workspaces (id) ON DELETE CASCADE,
    epoch bigint NOT NULL,
    sequence bigint NOT NULL,
    logged_at timestamptz NOT NULL,
    stage text NOT NULL,
    line text NOT NULL,
    CONSTRAINT workspace_logs_pkey PRIMARY KEY (workspace_id, epoch, sequence)
);

INSERT INTO chat.templates (id, name, kind, is_for_agents, group_ids, definition, version,
    request_hash, created_at)
VALUES ('00000000-0000-4000-8000-000000000001', 'scratch', 'scratch', true, '{}',
    '{"display_name": "Scratch", "description": "An empty directory for snippets and data work.", "lifetime": {"ttl_ms": 7200000, "ttl_max_ms": 0, "bump_ms": 3600000, "retention_ms": 604800000}}',
    1, '', clock_timestamp());
"""  # noqa: E501 (JSON has no line breaks inside of a text)


def upgrade() -> None:
    for statement in TABLES.split(";\n"):
        if statement.strip():
            op.execute(statement.replace(":", r"\:"))
