"""The table of what retention did on each day."""

from sqlalchemy import BigInteger, Column, Date, PrimaryKeyConstraint, Table, text

from chatd.primitives.store.columns import metadata
from chatd.primitives.store.constraints import Constraint

retention_counts = Table(
    "retention_counts",
    metadata,
    Column("day", Date, nullable=False),
    *(
        Column(name, BigInteger, nullable=False, server_default=text("0"))
        for name in ("noticed", "withdrawn", "archived", "purged")
    ),
    PrimaryKeyConstraint("day", name=Constraint.RETENTION_COUNTS_PKEY),
)
