"""The table of a service's outbox."""

from sqlalchemy import BigInteger, Column, DateTime, Identity, MetaData, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB, UUID


def outbox_table(metadata: MetaData) -> Table:
    """Add the outbox to the tables of a service.

    Rows are deleted once the gateway has them, so the table is nearly always empty.
    """
    return Table(
        "audit_outbox",
        metadata,
        Column("seq", BigInteger, Identity(always=True), primary_key=True),
        Column("id", UUID(as_uuid=False), nullable=False, server_default=text("gen_random_uuid()")),
        Column(
            "at",
            DateTime(timezone=True),
            nullable=False,
            server_default=text("clock_timestamp()"),
        ),
        Column("action", Text, nullable=False),
        Column("outcome", Text, nullable=False),
        Column("object_id", Text, nullable=False),
        Column("actor_user_id", UUID(as_uuid=False)),
        Column("subject_user_id", UUID(as_uuid=False)),
        Column("details", JSONB, nullable=False),
        Column("address", Text, nullable=False),
    )
