"""Identity providers that administrators configure, and links that users make."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE identity.oidc_issuers (
            id uuid PRIMARY KEY,
            name text NOT NULL CONSTRAINT oidc_issuers_name_unique UNIQUE,
            configuration jsonb NOT NULL,
            client_secret bytea,
            client_secret_key_id text,
            version bigint NOT NULL,
            created_at timestamptz NOT NULL,
            updated_at timestamptz NOT NULL,
            CONSTRAINT oidc_issuers_secret_has_its_key
                CHECK ((client_secret IS NULL) = (client_secret_key_id IS NULL))
        )
    """)
    op.execute("""
        ALTER TABLE identity.linked_identities
            ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid(),
            ADD CONSTRAINT linked_identities_id_unique UNIQUE (id)
    """)
    op.execute("ALTER TABLE identity.linked_identities ALTER COLUMN id DROP DEFAULT")
    op.execute("""
        ALTER TABLE identity.unfinished_sign_ins
            DROP CONSTRAINT unfinished_sign_ins_purpose_known,
            ADD CONSTRAINT unfinished_sign_ins_purpose_known CHECK (
                purpose IN ('second_factor', 'passkey_sign_in', 'new_passkey', 'oidc', 'oidc_link')
            )
    """)


def downgrade() -> None:
    op.execute("DROP TABLE identity.oidc_issuers")
