"""Old entries of the audit log are deleted by a transaction that says so, behind a checkpoint."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE OR REPLACE FUNCTION identity.refuse_audit_change() RETURNS trigger
        LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'DELETE' AND current_setting('parley.prunes_audit_log', true) = 'on' THEN
                RETURN NULL;
            END IF;
            RAISE EXCEPTION 'entries of the audit log are never changed or deleted';
        END $$
    """)


def downgrade() -> None:
    op.execute("""
        CREATE OR REPLACE FUNCTION identity.refuse_audit_change() RETURNS trigger
        LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'entries of the audit log are never changed or deleted';
        END $$
    """)
