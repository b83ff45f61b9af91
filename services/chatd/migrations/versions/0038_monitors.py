"""Monitors of background processes."""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE chat.monitors (
        id uuid NOT NULL,
        chat_id uuid NOT NULL,
        owner_id uuid NOT NULL,
        owner_role text NOT NULL,
        process_id text NOT NULL,
        command text NOT NULL,
        pattern text NOT NULL,
        note text NOT NULL,
        cursor bigint NOT NULL,
        state text NOT NULL,
        cause text NOT NULL,
        detail text NOT NULL,
        reason text NOT NULL,
        claimed_until timestamptz,
        created_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        CONSTRAINT monitors_pkey PRIMARY KEY (id),
        CONSTRAINT monitors_chat_fkey FOREIGN KEY (chat_id) REFERENCES chat.chats (id)
            ON DELETE CASCADE,
        CONSTRAINT monitors_state_known CHECK (state IN ('waiting', 'due', 'woken', 'ended')),
        CONSTRAINT monitors_cause_known CHECK (
            cause IN ('', 'matched', 'exited', 'lost', 'timed_out')),
        CONSTRAINT monitors_wake_has_cause CHECK (
            state NOT IN ('due', 'woken') OR cause <> '')
    )
    """,
    "CREATE INDEX monitors_by_chat ON chat.monitors (chat_id, created_at)",
    """
    CREATE INDEX monitors_open ON chat.monitors (claimed_until)
        WHERE state IN ('waiting', 'due')
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
