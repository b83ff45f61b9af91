"""Events for the audit log, recorded in the transaction of the change."""

from chatd.primitives.store.columns import SCHEMA, metadata
from parley.audit_log import AuditEvent
from parley.audit_log.outbox import record
from parley.audit_log.tables import outbox_table
from parley.postgres import Connection

audit_outbox = outbox_table(metadata)


async def record_event(connection: Connection, event: AuditEvent) -> None:
    """Record an event, done by the user of the call that is being served."""
    await record(connection, SCHEMA, event)
