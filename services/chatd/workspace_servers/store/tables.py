"""The table of trusted workspace servers."""

from sqlalchemy import ForeignKeyConstraint, PrimaryKeyConstraint, Table

from chatd.primitives.store.columns import id_column, metadata, text_column, time_column
from chatd.primitives.store.constraints import Constraint

trusted_servers = Table(
    "trusted_servers",
    metadata,
    id_column("workspace_id"),
    text_column("name"),
    text_column("digest"),
    id_column("user_id"),
    time_column("trusted_at"),
    PrimaryKeyConstraint("workspace_id", "name", name=Constraint.TRUSTED_SERVERS_PKEY),
    ForeignKeyConstraint(
        ["workspace_id"],
        ["chat.workspaces.id"],
        name=Constraint.TRUSTED_SERVERS_WORKSPACE_FKEY,
        ondelete="CASCADE",
    ),
)
