"""The table of users who may start nothing any more."""

from sqlalchemy import PrimaryKeyConstraint, Table

from chatd.primitives.store.columns import flag_column, id_column, metadata, time_column
from chatd.primitives.store.constraints import Constraint

suspended_users = Table(
    "suspended_users",
    metadata,
    id_column("user_id"),
    flag_column("is_deleted"),
    time_column("suspended_at"),
    PrimaryKeyConstraint("user_id", name=Constraint.SUSPENDED_USERS_PKEY),
)
