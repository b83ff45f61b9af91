"""Authenticator apps, recovery codes, passkeys, and sign-ins that are not finished."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE TABLE identity.keys (key_id text PRIMARY KEY, fingerprint text NOT NULL)")
    op.execute("""
        CREATE TABLE identity.totp_secrets (
            id uuid PRIMARY KEY,
            user_id uuid NOT NULL
                CONSTRAINT totp_secrets_user_id_fkey
                REFERENCES identity.users (id) ON DELETE CASCADE
                CONSTRAINT totp_secrets_user_unique UNIQUE,
            secret bytea NOT NULL,
            secret_key_id text NOT NULL,
            last_step bigint NOT NULL,
            created_at timestamptz NOT NULL,
            confirmed_at timestamptz
        )
    """)
    op.execute("""
        CREATE TABLE identity.recovery_codes (
            user_id uuid NOT NULL
                CONSTRAINT recovery_codes_user_id_fkey
                REFERENCES identity.users (id) ON DELETE CASCADE,
            digest bytea NOT NULL,
            used_at timestamptz,
            PRIMARY KEY (user_id, digest)
        )
    """)
    op.execute("""
        CREATE TABLE identity.passkeys (
            id uuid PRIMARY KEY,
            user_id uuid NOT NULL
                CONSTRAINT passkeys_user_id_fkey
                REFERENCES identity.users (id) ON DELETE CASCADE,
            credential_id bytea NOT NULL CONSTRAINT passkeys_credential_unique UNIQUE,
            public_key bytea NOT NULL,
            sign_count bigint NOT NULL,
            name text NOT NULL,
            created_at timestamptz NOT NULL,
            last_used_at timestamptz
        )
    """)
    op.execute("CREATE INDEX passkeys_by_user ON identity.passkeys (user_id)")
    op.execute("""
        CREATE TABLE identity.unfinished_sign_ins (
            digest bytea PRIMARY KEY,
            purpose text NOT NULL,
            user_id uuid
                CONSTRAINT unfinished_sign_ins_user_id_fkey
                REFERENCES identity.users (id) ON DELETE CASCADE,
            content bytea NOT NULL,
            expires_at timestamptz NOT NULL,
            CONSTRAINT unfinished_sign_ins_purpose_known
                CHECK (purpose IN ('second_factor', 'passkey_sign_in', 'new_passkey'))
        )
    """)
    op.execute(
        "CREATE INDEX unfinished_sign_ins_by_expiry ON identity.unfinished_sign_ins (expires_at)"
    )
    op.execute("""
        ALTER TABLE identity.sessions
            DROP CONSTRAINT sessions_method_known,
            ADD CONSTRAINT sessions_method_known
                CHECK (method IN ('login_link', 'sign_in_link', 'password', 'passkey'))
    """)


def downgrade() -> None:
    for table in (
        "unfinished_sign_ins",
        "passkeys",
        "recovery_codes",
        "totp_secrets",
        "keys",
    ):
        op.execute(f"DROP TABLE identity.{table}")
