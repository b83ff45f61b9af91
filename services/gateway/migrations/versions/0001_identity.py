"""Users, API keys, sessions, used login links, service tokens and the order of revocations."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE TABLE identity.users (
            id uuid PRIMARY KEY,
            login text NOT NULL CONSTRAINT users_login_unique UNIQUE,
            display_name text NOT NULL,
            email text NOT NULL DEFAULT '',
            role text NOT NULL,
            state text NOT NULL,
            version bigint NOT NULL,
            created_at timestamptz NOT NULL,
            updated_at timestamptz NOT NULL,
            deactivated_at timestamptz,
            CONSTRAINT users_login_form CHECK (login ~ '^[a-z0-9._-]{1,64}$'),
            CONSTRAINT users_role_known CHECK (role IN ('owner', 'admin', 'member', 'auditor')),
            CONSTRAINT users_state_known CHECK (state IN ('active', 'deactivated')),
            CONSTRAINT users_deactivation_dated CHECK (
                (state = 'deactivated') = (deactivated_at IS NOT NULL))
        )
    """)
    op.execute("""
        CREATE TABLE identity.api_keys (
            id text PRIMARY KEY,
            user_id uuid NOT NULL
                CONSTRAINT api_keys_user_id_fkey REFERENCES identity.users (id) ON DELETE CASCADE,
            digest bytea NOT NULL,
            is_from_setting boolean NOT NULL,
            created_at timestamptz NOT NULL,
            expires_at timestamptz,
            last_used_at timestamptz,
            revoked_at timestamptz,
            CONSTRAINT api_keys_digest_length CHECK (octet_length(digest) = 32)
        )
    """)
    op.execute("CREATE INDEX api_keys_by_user ON identity.api_keys (user_id)")
    op.execute("""
        CREATE TABLE identity.sessions (
            digest bytea PRIMARY KEY,
            user_id uuid NOT NULL
                CONSTRAINT sessions_user_id_fkey REFERENCES identity.users (id) ON DELETE CASCADE,
            created_at timestamptz NOT NULL,
            last_seen_at timestamptz NOT NULL,
            expires_at timestamptz NOT NULL,
            CONSTRAINT sessions_digest_length CHECK (octet_length(digest) = 32)
        )
    """)
    op.execute("CREATE INDEX sessions_by_user ON identity.sessions (user_id)")
    op.execute("CREATE INDEX sessions_by_expiry ON identity.sessions (expires_at)")
    op.execute("""
        CREATE TABLE identity.used_login_tokens (
            digest bytea PRIMARY KEY,
            used_at timestamptz NOT NULL
        )
    """)
    op.execute("""
        CREATE TABLE identity.service_tokens (
            id uuid PRIMARY KEY,
            name text NOT NULL,
            user_id uuid NOT NULL
                CONSTRAINT service_tokens_user_id_fkey REFERENCES identity.users (id),
            scopes text[] NOT NULL,
            issued_by_user_id uuid NOT NULL
                CONSTRAINT service_tokens_issued_by_user_id_fkey
                REFERENCES identity.users (id),
            request_id text NOT NULL,
            issued_at timestamptz NOT NULL,
            expires_at timestamptz NOT NULL,
            revoked_at timestamptz,
            revocation bigint CONSTRAINT service_tokens_revocation_unique UNIQUE,
            CONSTRAINT service_tokens_request_unique UNIQUE (issued_by_user_id, request_id),
            CONSTRAINT service_tokens_revocation_numbered CHECK (
                (revoked_at IS NULL) = (revocation IS NULL))
        )
    """)
    op.execute("CREATE INDEX service_tokens_by_user ON identity.service_tokens (user_id)")
    op.execute("CREATE INDEX service_tokens_by_expiry ON identity.service_tokens (expires_at)")
    op.execute("""
        CREATE TABLE identity.revocation_head (
            is_only boolean PRIMARY KEY DEFAULT true,
            version bigint NOT NULL,
            CONSTRAINT revocation_head_is_one_row CHECK (is_only)
        )
    """)
    op.execute("INSERT INTO identity.revocation_head (version) VALUES (0)")
