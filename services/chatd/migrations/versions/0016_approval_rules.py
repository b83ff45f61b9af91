"""Approval rules of the installation, of users and of chats."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE chat.approval_rules (
        id uuid NOT NULL,
        scope text NOT NULL,
        user_id uuid,
        chat_id uuid,
        effect text NOT NULL,
        tool text NOT NULL,
        server_id uuid,
        modes text[] NOT NULL,
        command text NOT NULL,
        arguments json NOT NULL,
        reason text NOT NULL,
        is_rememberable boolean NOT NULL,
        is_for_tainted boolean NOT NULL,
        digest text NOT NULL,
        version bigint NOT NULL,
        request_hash bytea NOT NULL,
        created_at timestamptz NOT NULL,
        CONSTRAINT approval_rules_pkey PRIMARY KEY (id),
        CONSTRAINT approval_rules_chat_fkey FOREIGN KEY (chat_id) REFERENCES chat.chats (id)
            ON DELETE CASCADE,
        CONSTRAINT approval_rules_scope_known CHECK (
            (scope = 'installation' AND user_id IS NULL AND chat_id IS NULL)
            OR (scope = 'user' AND user_id IS NOT NULL AND chat_id IS NULL)
            OR (scope = 'chat' AND user_id IS NULL AND chat_id IS NOT NULL)),
        CONSTRAINT approval_rules_effect_known CHECK (effect IN ('allow', 'ask', 'deny')),
        CONSTRAINT approval_rules_chats_remember CHECK (
            digest = '' OR (scope = 'chat' AND effect = 'allow')),
        CONSTRAINT approval_rules_users_trust_nothing CHECK (
            NOT is_for_tainted OR (scope <> 'user' AND effect = 'allow')),
        CONSTRAINT approval_rules_arguments_are_an_object CHECK (
            json_typeof(arguments) = 'object')
    )
    """,
    "CREATE INDEX approval_rules_by_user ON chat.approval_rules (user_id)"
    " WHERE user_id IS NOT NULL",
    "CREATE INDEX approval_rules_by_chat ON chat.approval_rules (chat_id)"
    " WHERE chat_id IS NOT NULL",
    "CREATE INDEX approval_rules_of_installation ON chat.approval_rules (id)"
    " WHERE scope = 'installation'",
    "CREATE UNIQUE INDEX approval_rules_by_digest ON chat.approval_rules (chat_id, digest)"
    " WHERE digest <> ''",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
