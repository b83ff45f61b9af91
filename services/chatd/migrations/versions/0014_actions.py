"""The mode of each dispatched call, and the actions that chats wait for."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

STATEMENTS = (
    # A constant default rewrites no row.
    "ALTER TABLE chat.tool_calls ADD COLUMN mode text NOT NULL DEFAULT ''",
    "ALTER TABLE chat.chats ADD COLUMN is_unattended boolean NOT NULL DEFAULT false",
    # Some actions have no deadline.
    "ALTER TABLE chat.chat_exec DROP CONSTRAINT chat_exec_action_has_a_deadline",
    """
    ALTER TABLE chat.chat_exec ADD CONSTRAINT chat_exec_only_actions_expire
        CHECK (deadline_at IS NULL OR status = 'requires_action')
    """,
    """
    CREATE TABLE chat.chat_actions (
        id uuid NOT NULL,
        chat_id uuid NOT NULL,
        message_id bigint NOT NULL,
        tool_call_id text NOT NULL,
        tool_name text NOT NULL,
        mcp_server_id text NOT NULL,
        kind text NOT NULL,
        arguments json NOT NULL,
        reason text NOT NULL,
        mode text NOT NULL,
        deadline_s double precision,
        created_at timestamptz NOT NULL,
        asked_at timestamptz,
        deadline_at timestamptz,
        ended_at timestamptz,
        outcome text,
        ended_by text NOT NULL DEFAULT '',
        answer json,
        result json,
        CONSTRAINT chat_actions_pkey PRIMARY KEY (id),
        CONSTRAINT chat_actions_message_fkey FOREIGN KEY (chat_id, message_id)
            REFERENCES chat.chat_messages (chat_id, id) ON DELETE CASCADE,
        CONSTRAINT chat_actions_kind_known
            CHECK (kind IN ('client', 'question', 'plan', 'approval', 'loop')),
        CONSTRAINT chat_actions_outcome_known
            CHECK (outcome IN ('answered', 'expired', 'cancelled')),
        CONSTRAINT chat_actions_end_has_an_outcome
            CHECK ((ended_at IS NULL) = (outcome IS NULL))
    )
    """,
    "CREATE INDEX chat_actions_by_message ON chat.chat_actions (chat_id, message_id)",
    "CREATE INDEX chat_actions_open ON chat.chat_actions (chat_id) WHERE ended_at IS NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
