"""The tables of the schema `identity`; migrations create them, and a test compares the two."""

from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from gateway.audit_log.store.tables import SCHEMA, metadata
from gateway.constraints import Constraint

__all__ = ["MIGRATIONS", "SCHEMA", "metadata"]

MIGRATIONS = Path(__file__).parents[2] / "migrations"


def _user_id(name: str, constraint: str, *, ondelete: str | None = None) -> Column[str]:
    key = ForeignKey("identity.users.id", name=constraint, ondelete=ondelete)
    return Column(name, UUID(as_uuid=False), key, nullable=False)


def _time(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


users = Table(
    "users",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("login", Text, nullable=False),
    Column("display_name", Text, nullable=False),
    Column("email", Text, nullable=False, server_default=text("''")),
    Column("role", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    _time("created_at"),
    _time("updated_at"),
    _time("deactivated_at", nullable=True),
    # The requester and the request id, so that a repeated request finds the first user.
    Column("creation_request", Text),
    Column("kind", Text, nullable=False, server_default=text("'person'")),
    UniqueConstraint("login", name=Constraint.USERS_LOGIN_UNIQUE),
    UniqueConstraint("creation_request", name=Constraint.USERS_CREATION_REQUEST_UNIQUE),
    CheckConstraint("login ~ '^[a-z0-9._-]{1,64}$'", name=Constraint.USERS_LOGIN_FORM),
    CheckConstraint(
        "role IN ('owner', 'admin', 'member', 'auditor')", name=Constraint.USERS_ROLE_KNOWN
    ),
    CheckConstraint(
        "state IN ('active', 'deactivated', 'deleted')", name=Constraint.USERS_STATE_KNOWN
    ),
    CheckConstraint(
        "(state = 'active') = (deactivated_at IS NULL)", name=Constraint.USERS_DEACTIVATION_DATED
    ),
    CheckConstraint("kind IN ('person', 'service')", name=Constraint.USERS_KIND_KNOWN),
)

# Of a deleted group the id is kept: it is never reused, and services can ask for its deletion.
groups = Table(
    "groups",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("name", Text, nullable=False),
    # The key for comparing and ordering names, from `gateway.identity.engine.groups.name_key`.
    Column("name_key", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    _time("created_at"),
    _time("updated_at"),
    _time("deleted_at", nullable=True),
    # The requester and the request id, so that a repeated request finds the first group.
    Column("creation_request", Text),
    UniqueConstraint("creation_request", name=Constraint.GROUPS_CREATION_REQUEST_UNIQUE),
    Index(
        Constraint.GROUPS_NAME_UNIQUE,
        "name_key",
        unique=True,
        postgresql_where=text("deleted_at IS NULL"),
    ),
)

group_members = Table(
    "group_members",
    metadata,
    Column(
        "group_id",
        UUID(as_uuid=False),
        ForeignKey(
            "identity.groups.id", name=Constraint.GROUP_MEMBERS_GROUP_ID_FKEY, ondelete="CASCADE"
        ),
        primary_key=True,
    ),
    Column(
        "user_id",
        UUID(as_uuid=False),
        ForeignKey(
            "identity.users.id", name=Constraint.GROUP_MEMBERS_USER_ID_FKEY, ondelete="CASCADE"
        ),
        primary_key=True,
    ),
    _time("added_at"),
    Index("group_members_by_user", "user_id"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    _user_id("user_id", Constraint.API_KEYS_USER_ID_FKEY, ondelete="CASCADE"),
    # SHA-256 of the secret, which has 256 random bits; the secret itself is not stored.
    Column("digest", LargeBinary, nullable=False),
    Column("is_from_setting", Boolean, nullable=False),
    _time("created_at"),
    _time("expires_at", nullable=True),
    _time("last_used_at", nullable=True),
    _time("revoked_at", nullable=True),
    Column("name", Text, nullable=False, server_default=text("''")),
    # Empty for all that the user may do.
    Column("scopes", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column(
        "created_by_user_id",
        UUID(as_uuid=False),
        ForeignKey("identity.users.id", name=Constraint.API_KEYS_CREATED_BY_USER_ID_FKEY),
    ),
    Column("request_id", Text),
    UniqueConstraint("created_by_user_id", "request_id", name=Constraint.API_KEYS_REQUEST_UNIQUE),
    CheckConstraint("octet_length(digest) = 32", name=Constraint.API_KEYS_DIGEST_LENGTH),
    Index("api_keys_by_user", "user_id"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _user_id("user_id", Constraint.SESSIONS_USER_ID_FKEY, ondelete="CASCADE"),
    _time("created_at"),
    _time("last_seen_at"),
    _time("expires_at"),
    Column("id", UUID(as_uuid=False), nullable=False),
    Column("method", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("user_agent", Text, nullable=False),
    UniqueConstraint("id", name=Constraint.SESSIONS_ID_UNIQUE),
    CheckConstraint("octet_length(digest) = 32", name=Constraint.SESSIONS_DIGEST_LENGTH),
    CheckConstraint(
        "method IN ('login_link', 'sign_in_link', 'password', 'passkey', 'oidc')",
        name=Constraint.SESSIONS_METHOD_KNOWN,
    ),
    Index("sessions_by_user", "user_id"),
    Index("sessions_by_expiry", "expires_at"),
)

# A login link works once, on any gateway and after any restart: the row records its use.
used_login_tokens = Table(
    "used_login_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _time("used_at"),
)

passwords = Table(
    "passwords",
    metadata,
    Column(
        "user_id",
        UUID(as_uuid=False),
        ForeignKey("identity.users.id", name=Constraint.PASSWORDS_USER_ID_FKEY, ondelete="CASCADE"),
        primary_key=True,
    ),
    # In the encoding of argon2, with its parameters and salt.
    Column("hash", Text, nullable=False),
    _time("changed_at"),
)

# SHA-256 of the token, which has 256 random bits; the token itself is not stored.
sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    _user_id("user_id", Constraint.SIGN_IN_LINKS_USER_ID_FKEY, ondelete="CASCADE"),
    Column("digest", LargeBinary, nullable=False),
    Column("purpose", Text, nullable=False),
    _user_id("created_by_user_id", Constraint.SIGN_IN_LINKS_CREATED_BY_USER_ID_FKEY),
    Column("request_id", Text, nullable=False),
    _time("created_at"),
    _time("expires_at"),
    _time("used_at", nullable=True),
    _time("revoked_at", nullable=True),
    UniqueConstraint("digest", name=Constraint.SIGN_IN_LINKS_DIGEST_UNIQUE),
    UniqueConstraint(
        "created_by_user_id", "request_id", name=Constraint.SIGN_IN_LINKS_REQUEST_UNIQUE
    ),
    CheckConstraint("octet_length(digest) = 32", name=Constraint.SIGN_IN_LINKS_DIGEST_LENGTH),
    CheckConstraint(
        "purpose IN ('invitation', 'password_reset')", name=Constraint.SIGN_IN_LINKS_PURPOSE_KNOWN
    ),
    CheckConstraint(
        "used_at IS NULL OR revoked_at IS NULL", name=Constraint.SIGN_IN_LINKS_END_ONCE
    ),
    Index("sign_in_links_by_user", "user_id"),
)

# Browsers that signed in before; attempts from them are not slowed down by attempts of others.
known_devices = Table(
    "known_devices",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _user_id("user_id", Constraint.KNOWN_DEVICES_USER_ID_FKEY, ondelete="CASCADE"),
    _time("created_at"),
    _time("last_used_at"),
    CheckConstraint("octet_length(digest) = 32", name=Constraint.KNOWN_DEVICES_DIGEST_LENGTH),
    Index("known_devices_by_user", "user_id"),
    Index("known_devices_by_use", "last_used_at"),
)

# Leaky buckets of attempts: each is empty again at `free_at`, and an attempt moves that time on. A
# subject is a digest: logins and addresses are not stored.
sign_in_attempts = Table(
    "sign_in_attempts",
    metadata,
    Column("subject", LargeBinary, primary_key=True),
    _time("free_at"),
    CheckConstraint("octet_length(subject) = 32", name=Constraint.SIGN_IN_ATTEMPTS_SUBJECT_LENGTH),
    Index("sign_in_attempts_by_end", "free_at"),
)

# Leaky buckets of request rates, which all gateways fill; a bucket is named by a digest, too.
request_rates = Table(
    "request_rates",
    metadata,
    Column("bucket", LargeBinary, primary_key=True),
    _time("empty_at"),
    CheckConstraint("octet_length(bucket) = 32", name=Constraint.REQUEST_RATES_BUCKET_LENGTH),
    Index("request_rates_by_end", "empty_at"),
    prefixes=["UNLOGGED"],
)

# The fingerprints of the master keys that values are encrypted with.
keys = Table(
    "keys",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
)

totp_secrets = Table(
    "totp_secrets",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    _user_id("user_id", Constraint.TOTP_SECRETS_USER_ID_FKEY, ondelete="CASCADE"),
    # Encrypted with the master key and bound to the row.
    Column("secret", LargeBinary, nullable=False),
    Column("secret_key_id", Text, nullable=False),
    # The time step of the last code that was accepted; a code works once.
    Column("last_step", BigInteger, nullable=False),
    _time("created_at"),
    _time("confirmed_at", nullable=True),
    UniqueConstraint("user_id", name=Constraint.TOTP_SECRETS_USER_UNIQUE),
)

recovery_codes = Table(
    "recovery_codes",
    metadata,
    Column(
        "user_id",
        UUID(as_uuid=False),
        ForeignKey(
            "identity.users.id", name=Constraint.RECOVERY_CODES_USER_ID_FKEY, ondelete="CASCADE"
        ),
        primary_key=True,
    ),
    # SHA-256 of the code, which has 80 random bits.
    Column("digest", LargeBinary, primary_key=True),
    _time("used_at", nullable=True),
)

passkeys = Table(
    "passkeys",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    _user_id("user_id", Constraint.PASSKEYS_USER_ID_FKEY, ondelete="CASCADE"),
    Column("credential_id", LargeBinary, nullable=False),
    Column("public_key", LargeBinary, nullable=False),
    Column("sign_count", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    _time("created_at"),
    _time("last_used_at", nullable=True),
    UniqueConstraint("credential_id", name=Constraint.PASSKEYS_CREDENTIAL_UNIQUE),
    Index("passkeys_by_user", "user_id"),
)

# Users of identity providers, by issuer and subject, which an issuer never gives to another.
linked_identities = Table(
    "linked_identities",
    metadata,
    Column("issuer", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    _user_id("user_id", Constraint.LINKED_IDENTITIES_USER_ID_FKEY, ondelete="CASCADE"),
    _time("linked_at"),
    # What users name it by when they unlink it.
    Column("id", UUID(as_uuid=False), nullable=False),
    UniqueConstraint("id", name=Constraint.LINKED_IDENTITIES_ID_UNIQUE),
    Index("linked_identities_by_user", "user_id"),
)

# Identity providers that administrators configured; further ones are in a file.
oidc_issuers = Table(
    "oidc_issuers",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("name", Text, nullable=False),
    # All but the name and the secret of the client.
    Column("configuration", JSONB, nullable=False),
    # Encrypted with the master key and bound to the row; NULL for a public client.
    Column("client_secret", LargeBinary),
    Column("client_secret_key_id", Text),
    Column("version", BigInteger, nullable=False),
    _time("created_at"),
    _time("updated_at"),
    UniqueConstraint("name", name=Constraint.OIDC_ISSUERS_NAME_UNIQUE),
    CheckConstraint(
        "(client_secret IS NULL) = (client_secret_key_id IS NULL)",
        name=Constraint.OIDC_ISSUERS_SECRET_HAS_ITS_KEY,
    ),
)

# What the second request of a sign-in continues; each is used once.
unfinished_sign_ins = Table(
    "unfinished_sign_ins",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("purpose", Text, nullable=False),
    Column(
        "user_id",
        UUID(as_uuid=False),
        ForeignKey(
            "identity.users.id",
            name=Constraint.UNFINISHED_SIGN_INS_USER_ID_FKEY,
            ondelete="CASCADE",
        ),
    ),
    # The hash that the password was verified with, or the challenge of a passkey.
    Column("content", LargeBinary, nullable=False),
    _time("expires_at"),
    CheckConstraint(
        "purpose IN ('second_factor', 'passkey_sign_in', 'new_passkey', 'oidc', 'oidc_link')",
        name=Constraint.UNFINISHED_SIGN_INS_PURPOSE_KNOWN,
    ),
    Index("unfinished_sign_ins_by_expiry", "expires_at"),
)

# No cascade from users: a revoked token that was deleted with its user would be accepted again.
service_tokens = Table(
    "service_tokens",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    Column("name", Text, nullable=False),
    _user_id("user_id", Constraint.SERVICE_TOKENS_USER_ID_FKEY),
    Column("scopes", ARRAY(Text), nullable=False),
    _user_id("issued_by_user_id", Constraint.SERVICE_TOKENS_ISSUED_BY_USER_ID_FKEY),
    Column("request_id", Text, nullable=False),
    _time("issued_at"),
    _time("expires_at"),
    _time("revoked_at", nullable=True),
    # Position in the order of all revocations; a watcher's state is one number.
    Column("revocation", BigInteger),
    # NULL if it was issued before keys were recorded.
    Column("signing_key_id", Text),
    UniqueConstraint(
        "issued_by_user_id", "request_id", name=Constraint.SERVICE_TOKENS_REQUEST_UNIQUE
    ),
    UniqueConstraint("revocation", name=Constraint.SERVICE_TOKENS_REVOCATION_UNIQUE),
    CheckConstraint(
        "(revoked_at IS NULL) = (revocation IS NULL)",
        name=Constraint.SERVICE_TOKENS_REVOCATION_NUMBERED,
    ),
    Index("service_tokens_by_user", "user_id"),
    Index("service_tokens_by_expiry", "expires_at"),
)

# Exports of all that is a person's; a gateway makes one while it holds the claim.
account_exports = Table(
    "account_exports",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True),
    _user_id("user_id", Constraint.ACCOUNT_EXPORTS_USER_ID_FKEY, ondelete="CASCADE"),
    _user_id("requested_by_user_id", Constraint.ACCOUNT_EXPORTS_REQUESTED_BY_USER_ID_FKEY),
    _time("created_at"),
    _time("completed_at", nullable=True),
    _time("expires_at", nullable=True),
    _time("claimed_until"),
    Column("failure", Text, nullable=False, server_default=text("''")),
    CheckConstraint(
        "(completed_at IS NULL) = (expires_at IS NULL)",
        name=Constraint.ACCOUNT_EXPORTS_COMPLETE_ONES_EXPIRE,
    ),
    CheckConstraint(
        "failure = '' OR completed_at IS NOT NULL",
        name=Constraint.ACCOUNT_EXPORTS_FAILED_ONES_ENDED,
    ),
    Index(
        Constraint.ACCOUNT_EXPORTS_ONE_RUNS,
        "user_id",
        unique=True,
        postgresql_where=text("completed_at IS NULL"),
    ),
)

# The files of an archive, each written once it is whole, so that an export goes on after them.
account_export_entries = Table(
    "account_export_entries",
    metadata,
    Column(
        "export_id",
        UUID(as_uuid=False),
        ForeignKey(
            "identity.account_exports.id",
            name=Constraint.ACCOUNT_EXPORT_ENTRIES_EXPORT_FKEY,
            ondelete="CASCADE",
        ),
        primary_key=True,
    ),
    Column("name", Text, primary_key=True),
    Column("sha256", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

# The parts of large files before the last one, which is the entry itself.
account_export_parts = Table(
    "account_export_parts",
    metadata,
    Column(
        "export_id",
        UUID(as_uuid=False),
        ForeignKey(
            "identity.account_exports.id",
            name=Constraint.ACCOUNT_EXPORT_PARTS_EXPORT_FKEY,
            ondelete="CASCADE",
        ),
        primary_key=True,
    ),
    Column("name", Text, primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

# One row. Locking it orders revocations, so that no number becomes visible after a higher one.
revocation_head = Table(
    "revocation_head",
    metadata,
    Column("is_only", Boolean, primary_key=True, server_default=text("true")),
    Column("version", BigInteger, nullable=False),
    CheckConstraint("is_only", name=Constraint.REVOCATION_HEAD_IS_ONE_ROW),
)
