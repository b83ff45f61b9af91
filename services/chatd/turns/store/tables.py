"""The table of the processes that run turns, with their leases."""

from sqlalchemy import Boolean, Column, PrimaryKeyConstraint, Table, text

from chatd.primitives.store.columns import (
    flag_column,
    id_column,
    metadata,
    text_column,
    time_column,
)
from chatd.primitives.store.constraints import Constraint

workers = Table(
    "workers",
    metadata,
    id_column("id"),
    text_column("address"),
    flag_column("is_draining"),
    time_column("lease_until"),
    time_column("started_at"),
    time_column("ended_at", nullable=True),
    Column("is_quarantine", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("id", name=Constraint.WORKERS_PKEY),
)
