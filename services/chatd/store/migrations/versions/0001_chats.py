"""Chats, their execution, messages and dispatched tool calls."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE chat.chats (
            id uuid PRIMARY KEY,
            owner_id uuid NOT NULL,
            title text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now()
        )
    """)
    op.execute("CREATE INDEX chats_by_owner ON chat.chats (owner_id, id)")
    op.execute("""
        CREATE TABLE chat.chat_exec (
            chat_id uuid PRIMARY KEY
                CONSTRAINT chat_exec_chat_id_fkey REFERENCES chat.chats (id) ON DELETE CASCADE,
            status text NOT NULL,
            snapshot_version bigint NOT NULL,
            history_version bigint NOT NULL,
            generation_attempt bigint NOT NULL,
            next_message_id bigint NOT NULL,
            owner_epoch bigint NOT NULL,
            worker_id uuid,
            last_error json,
            changed_at timestamptz NOT NULL,
            CONSTRAINT chat_exec_status_known CHECK (
                status IN ('waiting', 'running', 'interrupting', 'requires_action', 'error')),
            CONSTRAINT chat_exec_rest_has_no_owner CHECK (
                status IN ('running', 'interrupting')
                OR (worker_id IS NULL AND generation_attempt = 0)),
            CONSTRAINT chat_exec_error_is_told CHECK (
                (status = 'error') = (last_error IS NOT NULL)),
            CONSTRAINT chat_exec_versions_ordered CHECK (history_version <= snapshot_version)
        )
    """)
    op.execute("""
        CREATE TABLE chat.chat_messages (
            chat_id uuid NOT NULL
                CONSTRAINT chat_messages_chat_id_fkey
                REFERENCES chat.chats (id) ON DELETE CASCADE,
            id bigint NOT NULL,
            revision bigint NOT NULL,
            role text NOT NULL,
            content json NOT NULL,
            created_by text NOT NULL,
            created_at timestamptz NOT NULL,
            CONSTRAINT chat_messages_pkey PRIMARY KEY (chat_id, id),
            CONSTRAINT chat_messages_role_known CHECK (
                role IN ('system', 'user', 'assistant', 'tool'))
        )
    """)
    op.execute("""
        CREATE TABLE chat.tool_calls (
            execution_id uuid PRIMARY KEY,
            chat_id uuid NOT NULL,
            message_id bigint NOT NULL,
            tool_name text NOT NULL,
            executor text NOT NULL,
            owner_epoch bigint NOT NULL,
            journal_generation text NOT NULL,
            dispatched_at timestamptz NOT NULL,
            CONSTRAINT tool_calls_message_fkey FOREIGN KEY (chat_id, message_id)
                REFERENCES chat.chat_messages (chat_id, id) ON DELETE CASCADE,
            CONSTRAINT tool_calls_executor_known CHECK (
                executor IN ('toolrunner', 'mcpgateway'))
        )
    """)
    op.execute("CREATE INDEX tool_calls_by_message ON chat.tool_calls (chat_id, message_id)")
