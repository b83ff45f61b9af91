"""Buckets of request rates that all gateways share."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Unlogged: after a crash of the server buckets are empty, which is what a minute does too.
    op.execute("""
        CREATE UNLOGGED TABLE identity.request_rates (
            bucket bytea PRIMARY KEY,
            empty_at timestamptz NOT NULL,
            CONSTRAINT request_rates_bucket_length CHECK (octet_length(bucket) = 32)
        )
    """)
    op.execute("CREATE INDEX request_rates_by_end ON identity.request_rates (empty_at)")


def downgrade() -> None:
    op.execute("DROP TABLE identity.request_rates")
