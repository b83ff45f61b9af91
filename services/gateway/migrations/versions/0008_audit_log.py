"""The audit log: entries in a chain, and beside it who the people in it are."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE identity.audit_entries (
            seq bigint PRIMARY KEY,
            id uuid NOT NULL CONSTRAINT audit_entries_id_unique UNIQUE,
            at timestamptz NOT NULL,
            service text NOT NULL,
            action text NOT NULL,
            outcome text NOT NULL
                CONSTRAINT audit_entries_outcome_known CHECK (outcome IN ('done', 'refused')),
            object_id text NOT NULL,
            actor bytea,
            subject bytea,
            details jsonb NOT NULL,
            address bytea,
            previous_hash bytea NOT NULL,
            hash bytea NOT NULL
                CONSTRAINT audit_entries_hash_length CHECK (octet_length(hash) = 32),
            seal bytea
        )
    """)
    for column in ("actor", "subject", "action"):
        op.execute(
            f"CREATE INDEX audit_entries_by_{column} ON identity.audit_entries ({column}, seq)"
        )
    op.execute(
        "CREATE INDEX audit_entries_by_object ON identity.audit_entries (object_id, seq)"
    )
    op.execute("""
        CREATE FUNCTION identity.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'entries of the audit log are never changed or deleted';
        END $$
    """)
    op.execute("""
        CREATE TRIGGER audit_entries_are_kept
        BEFORE UPDATE OR DELETE OR TRUNCATE ON identity.audit_entries
        FOR EACH STATEMENT EXECUTE FUNCTION identity.refuse_audit_change()
    """)
    op.execute("""
        CREATE TABLE identity.audit_people (
            pseudonym bytea PRIMARY KEY,
            user_id uuid NOT NULL CONSTRAINT audit_people_user_unique UNIQUE,
            salt bytea NOT NULL
        )
    """)
    op.execute("""
        CREATE TABLE identity.audit_addresses (
            seq bigint PRIMARY KEY,
            address text NOT NULL,
            salt bytea NOT NULL
        )
    """)
    op.execute("""
        CREATE TABLE identity.audit_head (
            is_only boolean PRIMARY KEY DEFAULT true
                CONSTRAINT audit_head_is_one_row CHECK (is_only),
            seq bigint NOT NULL,
            hash bytea NOT NULL
        )
    """)
    op.execute("INSERT INTO identity.audit_head (seq, hash) VALUES (0, decode(repeat('00', 32), 'hex'))")


def downgrade() -> None:
    op.execute("DROP TABLE identity.audit_head, identity.audit_addresses, identity.audit_people")
    op.execute("DROP TABLE identity.audit_entries")
    op.execute("DROP FUNCTION identity.refuse_audit_change()")
