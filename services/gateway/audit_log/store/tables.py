"""The tables of the audit log, in the schema of this service."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gateway.constraints import Constraint

SCHEMA = "identity"

# The metadata of the whole schema, to which `gateway.identity.store.schema` adds its tables.
metadata = MetaData(schema=SCHEMA)

# Entries are never changed or deleted: a trigger refuses both.
audit_entries = Table(
    "audit_entries",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", UUID(as_uuid=False), nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("service", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    # Pseudonyms in `audit_people`.
    Column("actor", LargeBinary),
    Column("subject", LargeBinary),
    Column("details", JSONB, nullable=False),
    # The digest of the address in `audit_addresses`.
    Column("address", LargeBinary),
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("seal", LargeBinary),
    UniqueConstraint("id", name=Constraint.AUDIT_ENTRIES_ID_UNIQUE),
    CheckConstraint("octet_length(hash) = 32", name=Constraint.AUDIT_ENTRIES_HASH_LENGTH),
    CheckConstraint("outcome IN ('done', 'refused')", name=Constraint.AUDIT_ENTRIES_OUTCOME_KNOWN),
    Index("audit_entries_by_actor", "actor", "seq"),
    Index("audit_entries_by_subject", "subject", "seq"),
    Index("audit_entries_by_object", "object_id", "seq"),
    Index("audit_entries_by_action", "action", "seq"),
)

# Who is behind a pseudonym; the row of a deleted user is deleted.
audit_people = Table(
    "audit_people",
    metadata,
    Column("pseudonym", LargeBinary, primary_key=True),
    Column("user_id", UUID(as_uuid=False), nullable=False),
    Column("salt", LargeBinary, nullable=False),
    UniqueConstraint("user_id", name=Constraint.AUDIT_PEOPLE_USER_UNIQUE),
)

# From where; the rows of a deleted user are deleted.
audit_addresses = Table(
    "audit_addresses",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("address", Text, nullable=False),
    Column("salt", LargeBinary, nullable=False),
)

# One row. Locking it orders entries, so that the chain never forks.
audit_head = Table(
    "audit_head",
    metadata,
    Column("is_only", Boolean, primary_key=True, server_default=text("true")),
    Column("seq", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    CheckConstraint("is_only", name=Constraint.AUDIT_HEAD_IS_ONE_ROW),
)
