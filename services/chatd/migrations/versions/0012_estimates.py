"""Estimated bills, calls of models that are under way, and why answers ended."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE chat.usage ADD COLUMN is_estimate boolean NOT NULL DEFAULT false",
    """
    ALTER TABLE chat.chat_messages ADD COLUMN finish_reason text,
        ADD CONSTRAINT chat_messages_finish_reason_known CHECK (finish_reason IN ('stop',
            'tool_calls', 'length', 'content_filter', 'paused', 'interrupted', 'other')),
        ADD CONSTRAINT chat_messages_only_answers_finish
            CHECK (finish_reason IS NULL OR role = 'assistant')
    """,
    """
    CREATE TABLE chat.open_model_calls (
        id uuid NOT NULL,
        worker_id uuid NOT NULL,
        chat_id uuid NOT NULL,
        owner_id uuid NOT NULL,
        history_version bigint NOT NULL,
        generation_attempt bigint NOT NULL,
        purpose text NOT NULL,
        use json NOT NULL,
        CONSTRAINT open_model_calls_pkey PRIMARY KEY (id)
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
