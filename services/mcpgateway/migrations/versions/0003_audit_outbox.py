"""Events that wait for the audit log of the gateway."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE mcp.audit_outbox (
            seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            id uuid NOT NULL DEFAULT gen_random_uuid(),
            at timestamptz NOT NULL DEFAULT clock_timestamp(),
            action text NOT NULL,
            outcome text NOT NULL,
            object_id text NOT NULL,
            actor_user_id uuid,
            subject_user_id uuid,
            details jsonb NOT NULL,
            address text NOT NULL
        )
    """)


def downgrade() -> None:
    op.execute("DROP TABLE mcp.audit_outbox")
