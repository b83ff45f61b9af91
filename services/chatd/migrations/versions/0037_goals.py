"""Goals of chats."""

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE chat.goals (
        chat_id uuid NOT NULL,
        id uuid NOT NULL,
        owner_id uuid NOT NULL,
        owner_role text NOT NULL,
        text text NOT NULL,
        check_command text NOT NULL,
        turns_max bigint NOT NULL,
        seconds_max bigint NOT NULL,
        cost_max_micros bigint NOT NULL,
        state text NOT NULL,
        reason text NOT NULL,
        turns_count bigint NOT NULL,
        check_output text NOT NULL,
        resumes_count bigint NOT NULL,
        resumed_version bigint NOT NULL,
        claimed_until timestamptz,
        request_hash bytea NOT NULL,
        created_at timestamptz NOT NULL,
        CONSTRAINT goals_pkey PRIMARY KEY (chat_id),
        CONSTRAINT goals_chat_fkey FOREIGN KEY (chat_id) REFERENCES chat.chats (id)
            ON DELETE CASCADE,
        CONSTRAINT goals_state_known CHECK (
            state IN ('active', 'paused', 'reached', 'exhausted'))
    )
    """,
    "CREATE INDEX goals_active ON chat.goals (chat_id) WHERE state = 'active'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
