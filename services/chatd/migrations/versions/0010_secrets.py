"""Secrets for workspaces, and the record of their uses."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE chat.secrets (
    id uuid NOT NULL,
    owner_id uuid NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    username text NOT NULL,
    delivery text NOT NULL,
    hosts text[] NOT NULL,
    header text NOT NULL,
    hint text NOT NULL,
    sealed bytea NOT NULL,
    sealed_key_id text NOT NULL,
    version bigint NOT NULL,
    request_hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    last_used_at timestamptz,
    CONSTRAINT secrets_pkey PRIMARY KEY (id),
    CONSTRAINT secrets_delivery_known CHECK (delivery IN ('proxy', 'git', 'environment')),
    CONSTRAINT secrets_name_length CHECK (char_length(name) BETWEEN 1 AND 64),
    CONSTRAINT secrets_hint_short CHECK (char_length(hint) <= 4)
);
CREATE UNIQUE INDEX secrets_by_name ON chat.secrets (owner_id, name);

CREATE TABLE chat.secret_uses (
    id uuid NOT NULL,
    node_id uuid NOT NULL,
    request_id text NOT NULL,
    workspace_id uuid NOT NULL,
    owner_id uuid,
    secret_id uuid,
    secret_name text NOT NULL,
    host text NOT NULL,
    purpose text NOT NULL,
    outcome text NOT NULL,
    used_at timestamptz NOT NULL,
    CONSTRAINT secret_uses_pkey PRIMARY KEY (id),
    CONSTRAINT secret_uses_outcome_known CHECK (
        outcome IN ('given', 'not_placed', 'not_granted', 'no_such_secret', 'wrong_host')
    )
);
CREATE UNIQUE INDEX secret_uses_by_request ON chat.secret_uses (node_id, request_id);
CREATE INDEX secret_uses_by_workspace ON chat.secret_uses (workspace_id, used_at);
CREATE INDEX secret_uses_by_owner ON chat.secret_uses (owner_id, used_at);
CREATE INDEX secret_uses_by_age ON chat.secret_uses (used_at);
"""


def upgrade() -> None:
    for statement in TABLES.split(";\n"):
        if statement.strip():
            op.execute(statement)
