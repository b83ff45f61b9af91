"""Push subscriptions of users, and the key pair that signs notifications."""

from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

TABLES = (
    """
    CREATE TABLE chat.push_subscriptions (
        id uuid NOT NULL,
        owner_id uuid NOT NULL,
        name text NOT NULL,
        host text NOT NULL,
        endpoint_hash bytea NOT NULL,
        sealed bytea NOT NULL,
        sealed_key_id text NOT NULL,
        request_id uuid NOT NULL,
        request_hash bytea NOT NULL,
        created_at timestamptz NOT NULL,
        last_sent_at timestamptz,
        last_error text NOT NULL,
        CONSTRAINT push_subscriptions_pkey PRIMARY KEY (id),
        CONSTRAINT push_subscriptions_by_endpoint UNIQUE (owner_id, endpoint_hash)
    )
    """,
    """
    CREATE TABLE chat.push_keys (
        id uuid NOT NULL,
        sealed bytea NOT NULL,
        sealed_key_id text NOT NULL,
        created_at timestamptz NOT NULL,
        CONSTRAINT push_keys_pkey PRIMARY KEY (id)
    )
    """,
)


def upgrade() -> None:
    for statement in TABLES:
        op.execute(statement)
