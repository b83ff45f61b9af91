"""Users of identity providers, and sign-ins with them."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE identity.linked_identities (
            issuer text NOT NULL,
            subject text NOT NULL,
            user_id uuid NOT NULL
                CONSTRAINT linked_identities_user_id_fkey
                REFERENCES identity.users (id) ON DELETE CASCADE,
            linked_at timestamptz NOT NULL,
            PRIMARY KEY (issuer, subject)
        )
    """)
    op.execute("CREATE INDEX linked_identities_by_user ON identity.linked_identities (user_id)")
    op.execute("""
        ALTER TABLE identity.sessions
            DROP CONSTRAINT sessions_method_known,
            ADD CONSTRAINT sessions_method_known
                CHECK (method IN ('login_link', 'sign_in_link', 'password', 'passkey', 'oidc'))
    """)
    op.execute("""
        ALTER TABLE identity.unfinished_sign_ins
            DROP CONSTRAINT unfinished_sign_ins_purpose_known,
            ADD CONSTRAINT unfinished_sign_ins_purpose_known
                CHECK (purpose IN ('second_factor', 'passkey_sign_in', 'new_passkey', 'oidc'))
    """)


def downgrade() -> None:
    op.execute("DROP TABLE identity.linked_identities")
