"""The table of the master keys with which values of this schema were sealed."""

from sqlalchemy import PrimaryKeyConstraint, Table

from chatd.primitives.store.columns import metadata, text_column
from chatd.primitives.store.constraints import Constraint

key_fingerprints = Table(
    "key_fingerprints",
    metadata,
    text_column("key_id"),
    text_column("fingerprint"),
    PrimaryKeyConstraint("key_id", name=Constraint.KEY_FINGERPRINTS_PKEY),
)
