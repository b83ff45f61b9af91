"""Chats, their execution, messages, queue, tool calls, workers, files, shares, usage and settings."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE chat.chats (
    id uuid CONSTRAINT chats_pkey PRIMARY KEY,
    owner_id uuid NOT NULL,
    owner_role text NOT NULL,
    title text NOT NULL,
    has_own_title boolean NOT NULL,
    parent_chat_id uuid CONSTRAINT chats_parent_fkey REFERENCES chat.chats (id) ON DELETE CASCADE,
    root_chat_id uuid NOT NULL,
    model_id text NOT NULL,
    reasoning_effort text NOT NULL,
    mode text NOT NULL,
    workspace_id uuid,
    mcp_server_ids uuid[] NOT NULL,
    labels jsonb NOT NULL,
    pin_order integer NOT NULL,
    summary text NOT NULL,
    last_turn_summary text NOT NULL,
    client_tools json NOT NULL,
    last_read_message_id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT chats_title_length CHECK (char_length(title) BETWEEN 1 AND 200),
    CONSTRAINT chats_mode_known CHECK (mode IN ('', 'plan', 'explore')),
    CONSTRAINT chats_root_of_itself CHECK ((parent_chat_id IS NULL) = (root_chat_id = id)),
    CONSTRAINT chats_only_roots_are_pinned CHECK (
        pin_order = 0 OR (pin_order > 0 AND parent_chat_id IS NULL)),
    CONSTRAINT chats_labels_are_an_object CHECK (jsonb_typeof(labels) = 'object')
);
CREATE INDEX chats_by_owner ON chat.chats (owner_id, id) WHERE parent_chat_id IS NULL;
CREATE INDEX chats_by_root ON chat.chats (root_chat_id);
CREATE INDEX chats_by_label ON chat.chats USING gin (labels);

CREATE TABLE chat.workers (
    id uuid CONSTRAINT workers_pkey PRIMARY KEY,
    address text NOT NULL,
    is_draining boolean NOT NULL,
    lease_until timestamptz NOT NULL,
    started_at timestamptz NOT NULL
);

CREATE TABLE chat.chat_exec (
    chat_id uuid CONSTRAINT chat_exec_pkey PRIMARY KEY
        CONSTRAINT chat_exec_chat_fkey REFERENCES chat.chats (id) ON DELETE CASCADE,
    status text NOT NULL,
    archived boolean NOT NULL,
    snapshot_version bigint NOT NULL,
    history_version bigint NOT NULL,
    queue_version bigint NOT NULL,
    retry_version bigint NOT NULL,
    generation_attempt bigint NOT NULL,
    next_message_id bigint NOT NULL,
    turn_id bigint NOT NULL,
    queue_length integer NOT NULL,
    owner_epoch bigint NOT NULL,
    worker_id uuid,
    takeovers integer NOT NULL,
    pending json NOT NULL,
    compactions integer NOT NULL,
    is_compaction_requested boolean NOT NULL,
    deadline_at timestamptz,
    last_error json,
    retry json,
    changed_at timestamptz NOT NULL,
    changed_xid xid8 NOT NULL,
    CONSTRAINT chat_exec_status_known CHECK (
        status IN ('waiting', 'running', 'interrupting', 'requires_action', 'error')),
    CONSTRAINT chat_exec_only_runners_are_owned CHECK (
        worker_id IS NULL OR status IN ('running', 'interrupting')),
    CONSTRAINT chat_exec_error_is_told CHECK ((status = 'error') = (last_error IS NOT NULL)),
    CONSTRAINT chat_exec_action_has_a_deadline CHECK (
        (status = 'requires_action') = (deadline_at IS NOT NULL)),
    CONSTRAINT chat_exec_archived_is_at_rest CHECK (
        NOT archived OR status IN ('waiting', 'error')),
    CONSTRAINT chat_exec_waiting_has_no_queue CHECK (status <> 'waiting' OR queue_length = 0),
    CONSTRAINT chat_exec_queue_bounded CHECK (queue_length BETWEEN 0 AND 20),
    CONSTRAINT chat_exec_versions_ordered CHECK (
        greatest(history_version, queue_version, retry_version) <= snapshot_version),
    CONSTRAINT chat_exec_counts_positive CHECK (
        next_message_id >= 1 AND owner_epoch >= 0 AND generation_attempt >= 0
        AND takeovers >= 0 AND compactions >= 0)
) WITH (fillfactor = 70);
CREATE INDEX chat_exec_to_run ON chat.chat_exec (worker_id, changed_at)
    WHERE status IN ('running', 'interrupting');
CREATE INDEX chat_exec_by_deadline ON chat.chat_exec (deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX chat_exec_by_change ON chat.chat_exec (changed_xid);

CREATE TABLE chat.chat_messages (
    chat_id uuid NOT NULL
        CONSTRAINT chat_messages_chat_fkey REFERENCES chat.chats (id) ON DELETE CASCADE,
    id bigint NOT NULL,
    revision bigint NOT NULL,
    role text NOT NULL,
    visibility text NOT NULL,
    content json NOT NULL,
    content_version smallint NOT NULL,
    is_compressed boolean NOT NULL,
    is_deleted boolean NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    use json,
    CONSTRAINT chat_messages_pkey PRIMARY KEY (chat_id, id),
    CONSTRAINT chat_messages_role_known CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    CONSTRAINT chat_messages_visibility_known CHECK (visibility IN ('user', 'model', 'both')),
    CONSTRAINT chat_messages_content_version_known CHECK (content_version IN (0, 1)),
    CONSTRAINT chat_messages_only_answers_cost CHECK (use IS NULL OR role = 'assistant')
);
CREATE INDEX chat_messages_by_revision ON chat.chat_messages (chat_id, revision);
CREATE INDEX chat_messages_boundary ON chat.chat_messages (chat_id, id DESC)
    WHERE is_compressed AND visibility = 'model' AND NOT is_deleted;

CREATE TABLE chat.chat_queue (
    chat_id uuid NOT NULL
        CONSTRAINT chat_queue_chat_fkey REFERENCES chat.chats (id) ON DELETE CASCADE,
    id uuid NOT NULL,
    position bigint NOT NULL,
    content json NOT NULL,
    content_version smallint NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT chat_queue_pkey PRIMARY KEY (chat_id, id)
);

CREATE TABLE chat.tool_calls (
    execution_id uuid CONSTRAINT tool_calls_pkey PRIMARY KEY,
    chat_id uuid NOT NULL,
    message_id bigint NOT NULL,
    tool_call_id text NOT NULL,
    tool_name text NOT NULL,
    executor text NOT NULL,
    owner_epoch bigint NOT NULL,
    journal_generation text NOT NULL,
    dispatched_at timestamptz NOT NULL,
    finished_at timestamptz,
    result json,
    CONSTRAINT tool_calls_message_fkey FOREIGN KEY (chat_id, message_id)
        REFERENCES chat.chat_messages (chat_id, id) ON DELETE CASCADE,
    CONSTRAINT tool_calls_executor_known CHECK (executor IN ('toolrunner', 'mcpgateway')),
    CONSTRAINT tool_calls_result_has_a_time CHECK ((result IS NULL) = (finished_at IS NULL))
);
CREATE INDEX tool_calls_by_message ON chat.tool_calls (chat_id, message_id);

CREATE TABLE chat.chat_partials (
    chat_id uuid NOT NULL
        CONSTRAINT chat_partials_chat_fkey REFERENCES chat.chats (id) ON DELETE CASCADE,
    history_version bigint NOT NULL,
    generation_attempt bigint NOT NULL,
    first_seq bigint NOT NULL,
    content json NOT NULL,
    CONSTRAINT chat_partials_pkey
        PRIMARY KEY (chat_id, history_version, generation_attempt, first_seq)
);

CREATE TABLE chat.client_keys (
    chat_id uuid NOT NULL
        CONSTRAINT client_keys_chat_fkey REFERENCES chat.chats (id) ON DELETE CASCADE,
    key text NOT NULL,
    body_hash bytea NOT NULL,
    snapshot_version bigint NOT NULL,
    outcome json NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT client_keys_pkey PRIMARY KEY (chat_id, key),
    CONSTRAINT client_keys_key_length CHECK (char_length(key) BETWEEN 1 AND 128)
);
CREATE INDEX client_keys_by_age ON chat.client_keys (created_at);

CREATE TABLE chat.chat_shares (
    chat_id uuid NOT NULL
        CONSTRAINT chat_shares_chat_fkey REFERENCES chat.chats (id) ON DELETE CASCADE,
    grantee_kind text NOT NULL,
    grantee_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT chat_shares_pkey PRIMARY KEY (chat_id, grantee_kind, grantee_id),
    CONSTRAINT chat_shares_kind_known CHECK (grantee_kind IN ('user', 'group'))
);
CREATE INDEX chat_shares_by_grantee ON chat.chat_shares (grantee_id, chat_id);

CREATE TABLE chat.files (
    id uuid CONSTRAINT files_pkey PRIMARY KEY,
    owner_id uuid NOT NULL,
    name text NOT NULL,
    media_type text NOT NULL,
    sha256 bytea NOT NULL,
    data bytea NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT files_size_bounded CHECK (octet_length(data) BETWEEN 1 AND 10485760),
    CONSTRAINT files_name_bounded CHECK (octet_length(name) BETWEEN 1 AND 255)
);
CREATE TABLE chat.chat_files (
    chat_id uuid NOT NULL
        CONSTRAINT chat_files_chat_fkey REFERENCES chat.chats (id) ON DELETE CASCADE,
    file_id uuid NOT NULL
        CONSTRAINT chat_files_file_fkey REFERENCES chat.files (id) ON DELETE RESTRICT,
    CONSTRAINT chat_files_pkey PRIMARY KEY (chat_id, file_id)
);

-- No reference to chats: what a chat cost stays counted after it is gone.
CREATE TABLE chat.usage (
    id uuid CONSTRAINT usage_pkey PRIMARY KEY,
    chat_id uuid NOT NULL,
    root_chat_id uuid NOT NULL,
    owner_id uuid NOT NULL,
    purpose text NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    outcome text NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cache_read_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    input_price numeric,
    output_price numeric,
    cache_read_price numeric,
    cache_write_price numeric,
    cost_micros bigint,
    model_runtime_ms bigint NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT usage_counts_positive CHECK (
        least(input_tokens, output_tokens, reasoning_tokens, cache_read_tokens,
              cache_write_tokens, model_runtime_ms) >= 0),
    CONSTRAINT usage_cost_positive CHECK (cost_micros >= 0)
);
CREATE INDEX usage_by_owner ON chat.usage (owner_id, created_at);
CREATE INDEX usage_by_root ON chat.usage (root_chat_id);

CREATE TABLE chat.settings (
    scope uuid NOT NULL,
    name text NOT NULL,
    value json NOT NULL,
    CONSTRAINT settings_pkey PRIMARY KEY (scope, name)
);

CREATE TABLE chat.barred_users (
    user_id uuid CONSTRAINT barred_users_pkey PRIMARY KEY,
    is_deleted boolean NOT NULL,
    barred_at timestamptz NOT NULL
);

CREATE TABLE chat.key_fingerprints (
    key_id text CONSTRAINT key_fingerprints_pkey PRIMARY KEY,
    fingerprint text NOT NULL
);
"""


def upgrade() -> None:
    for statement in TABLES.split(";\n"):
        if statement.strip():
            op.execute(statement)
