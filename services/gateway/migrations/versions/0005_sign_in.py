"""Passwords, one-time links, known devices, slowed attempts, and what is shown of sessions and keys."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        ALTER TABLE identity.users
            ADD COLUMN kind text NOT NULL DEFAULT 'person'
                CONSTRAINT users_kind_known CHECK (kind IN ('person', 'service'))
    """)
    op.execute("""
        CREATE TABLE identity.passwords (
            user_id uuid PRIMARY KEY
                CONSTRAINT passwords_user_id_fkey REFERENCES identity.users (id) ON DELETE CASCADE,
            hash text NOT NULL,
            changed_at timestamptz NOT NULL
        )
    """)
    op.execute("""
        CREATE TABLE identity.sign_in_links (
            id uuid PRIMARY KEY,
            user_id uuid NOT NULL
                CONSTRAINT sign_in_links_user_id_fkey
                REFERENCES identity.users (id) ON DELETE CASCADE,
            digest bytea NOT NULL CONSTRAINT sign_in_links_digest_unique UNIQUE,
            purpose text NOT NULL,
            created_by_user_id uuid NOT NULL
                CONSTRAINT sign_in_links_created_by_user_id_fkey REFERENCES identity.users (id),
            request_id text NOT NULL,
            created_at timestamptz NOT NULL,
            expires_at timestamptz NOT NULL,
            used_at timestamptz,
            revoked_at timestamptz,
            CONSTRAINT sign_in_links_request_unique UNIQUE (created_by_user_id, request_id),
            CONSTRAINT sign_in_links_digest_length CHECK (octet_length(digest) = 32),
            CONSTRAINT sign_in_links_purpose_known
                CHECK (purpose IN ('invitation', 'password_reset')),
            CONSTRAINT sign_in_links_end_once CHECK (used_at IS NULL OR revoked_at IS NULL)
        )
    """)
    op.execute("CREATE INDEX sign_in_links_by_user ON identity.sign_in_links (user_id)")
    op.execute("""
        CREATE TABLE identity.known_devices (
            digest bytea PRIMARY KEY,
            user_id uuid NOT NULL
                CONSTRAINT known_devices_user_id_fkey
                REFERENCES identity.users (id) ON DELETE CASCADE,
            created_at timestamptz NOT NULL,
            last_used_at timestamptz NOT NULL,
            CONSTRAINT known_devices_digest_length CHECK (octet_length(digest) = 32)
        )
    """)
    op.execute("CREATE INDEX known_devices_by_user ON identity.known_devices (user_id)")
    op.execute("CREATE INDEX known_devices_by_use ON identity.known_devices (last_used_at)")
    op.execute("""
        CREATE TABLE identity.sign_in_attempts (
            subject bytea PRIMARY KEY,
            free_at timestamptz NOT NULL,
            CONSTRAINT sign_in_attempts_subject_length CHECK (octet_length(subject) = 32)
        )
    """)
    op.execute("CREATE INDEX sign_in_attempts_by_end ON identity.sign_in_attempts (free_at)")
    op.execute("""
        ALTER TABLE identity.sessions
            ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid(),
            ADD COLUMN method text NOT NULL DEFAULT 'login_link',
            ADD COLUMN address text NOT NULL DEFAULT '',
            ADD COLUMN user_agent text NOT NULL DEFAULT '',
            ADD CONSTRAINT sessions_id_unique UNIQUE (id),
            ADD CONSTRAINT sessions_method_known
                CHECK (method IN ('login_link', 'sign_in_link', 'password'))
    """)
    op.execute("""
        ALTER TABLE identity.sessions
            ALTER COLUMN id DROP DEFAULT,
            ALTER COLUMN method DROP DEFAULT,
            ALTER COLUMN address DROP DEFAULT,
            ALTER COLUMN user_agent DROP DEFAULT
    """)
    op.execute("""
        ALTER TABLE identity.api_keys
            ADD COLUMN name text NOT NULL DEFAULT '',
            ADD COLUMN scopes text[] NOT NULL DEFAULT '{}',
            ADD COLUMN created_by_user_id uuid
                CONSTRAINT api_keys_created_by_user_id_fkey REFERENCES identity.users (id),
            ADD COLUMN request_id text,
            ADD CONSTRAINT api_keys_request_unique UNIQUE (created_by_user_id, request_id)
    """)


def downgrade() -> None:
    op.execute("""
        ALTER TABLE identity.api_keys
            DROP COLUMN name,
            DROP COLUMN scopes,
            DROP COLUMN created_by_user_id,
            DROP COLUMN request_id
    """)
    op.execute("""
        ALTER TABLE identity.sessions
            DROP COLUMN id,
            DROP COLUMN method,
            DROP COLUMN address,
            DROP COLUMN user_agent
    """)
    for table in ("sign_in_attempts", "known_devices", "sign_in_links", "passwords"):
        op.execute(f"DROP TABLE identity.{table}")
    op.execute("ALTER TABLE identity.users DROP COLUMN kind")
