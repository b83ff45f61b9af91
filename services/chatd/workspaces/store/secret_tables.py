"""The tables of secrets for workspaces and of their uses."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from chatd.primitives.store.columns import (
    count_column,
    id_column,
    metadata,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

#: The unique index that detects a repeated request for a use.

secrets = Table(
    "secrets",
    metadata,
    id_column("id"),
    id_column("owner_id"),
    text_column("name"),
    text_column("description"),
    text_column("username"),
    text_column("delivery"),
    Column("hosts", ARRAY(Text), nullable=False),
    text_column("header"),
    text_column("hint"),
    Column("sealed", LargeBinary, nullable=False),
    text_column("sealed_key_id"),
    count_column("version"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    time_column("changed_at"),
    time_column("last_used_at", nullable=True),
    PrimaryKeyConstraint("id", name=Constraint.SECRETS_PKEY),
    CheckConstraint(
        "delivery IN ('proxy', 'git', 'environment')", name=Constraint.SECRETS_DELIVERY_KNOWN
    ),
    CheckConstraint("char_length(name) BETWEEN 1 AND 64", name=Constraint.SECRETS_NAME_LENGTH),
    CheckConstraint("char_length(hint) <= 4", name=Constraint.SECRETS_HINT_SHORT),
    Index(Constraint.SECRETS_BY_NAME, "owner_id", "name", unique=True),
)

secret_uses = Table(
    "secret_uses",
    metadata,
    id_column("id"),
    id_column("node_id"),
    text_column("request_id"),
    id_column("workspace_id"),
    id_column("owner_id", nullable=True),
    id_column("secret_id", nullable=True),
    text_column("secret_name"),
    text_column("host"),
    text_column("purpose"),
    text_column("outcome"),
    time_column("used_at"),
    PrimaryKeyConstraint("id", name=Constraint.SECRET_USES_PKEY),
    CheckConstraint(
        "outcome IN ('given', 'not_placed', 'not_granted', 'no_such_secret', 'wrong_host')",
        name=Constraint.SECRET_USES_OUTCOME_KNOWN,
    ),
    Index(Constraint.SECRET_USES_BY_REQUEST, "node_id", "request_id", unique=True),
    Index("secret_uses_by_workspace", "workspace_id", "used_at"),
    Index("secret_uses_by_owner", "owner_id", "used_at"),
    Index("secret_uses_by_age", "used_at"),
)
