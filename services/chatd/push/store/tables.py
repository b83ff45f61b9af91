"""The tables of push subscriptions and of the key pair that signs notifications."""

from sqlalchemy import Column, LargeBinary, PrimaryKeyConstraint, Table, UniqueConstraint

from chatd.primitives.store.columns import id_column, metadata, text_column, time_column
from chatd.primitives.store.constraints import Constraint

push_subscriptions = Table(
    "push_subscriptions",
    metadata,
    id_column("id"),
    id_column("owner_id"),
    text_column("name"),
    text_column("host"),
    # The endpoint itself is encrypted, because anybody who has it can send to the device.
    Column("endpoint_hash", LargeBinary, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    text_column("sealed_key_id"),
    # The last request that stored it, so that a repetition is recognised.
    id_column("request_id"),
    Column("request_hash", LargeBinary, nullable=False),
    time_column("created_at"),
    time_column("last_sent_at", nullable=True),
    text_column("last_error"),
    PrimaryKeyConstraint("id", name=Constraint.PUSH_SUBSCRIPTIONS_PKEY),
    UniqueConstraint("owner_id", "endpoint_hash", name=Constraint.PUSH_SUBSCRIPTIONS_BY_ENDPOINT),
)

# One row, which the first use makes.
push_keys = Table(
    "push_keys",
    metadata,
    id_column("id"),
    Column("sealed", LargeBinary, nullable=False),
    text_column("sealed_key_id"),
    time_column("created_at"),
    PrimaryKeyConstraint("id", name=Constraint.PUSH_KEYS_PKEY),
)
