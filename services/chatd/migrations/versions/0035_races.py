"""Races: one task, given to several models."""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE chat.races (
        chat_id uuid NOT NULL CONSTRAINT races_chat_fkey
            REFERENCES chat.chats (id) ON DELETE CASCADE,
        check_command text NOT NULL,
        cancelled_at timestamptz,
        applied_chat_id uuid,
        CONSTRAINT races_pkey PRIMARY KEY (chat_id)
    )
    """,
    """
    CREATE TABLE chat.race_candidates (
        race_id uuid NOT NULL CONSTRAINT race_candidates_race_fkey
            REFERENCES chat.races (chat_id) ON DELETE CASCADE,
        position integer NOT NULL,
        chat_id uuid NOT NULL,
        model text NOT NULL,
        model_id text NOT NULL,
        check_exit_code integer,
        check_output text NOT NULL,
        checked_version bigint NOT NULL,
        CONSTRAINT race_candidates_pkey PRIMARY KEY (race_id, position)
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
