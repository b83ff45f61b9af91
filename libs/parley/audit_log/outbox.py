"""The outbox of a service other than the gateway: events wait there until the chain has them.

A service inserts an event in the transaction of the change itself, so that neither exists without
the other. `AuditDelivery` sends waiting events to the gateway, which appends them once.
"""

import json
import re
from typing import Final

from parley.audit_log.event import AuditEvent
from parley.postgres import Connection
from parley.rpc import current_origin

_SCHEMA = re.compile("[a-z]+")

# The columns have defaults for id and time.
# May run: process.
_INSERT: Final = """
    INSERT INTO {schema}.audit_outbox
        (action, outcome, object_id, actor_user_id, subject_user_id, details, address)
    VALUES ($1, $2, $3, $4::uuid, $5::uuid, $6::jsonb, $7)
"""


def insert_statement(schema: str) -> str:
    """Return the statement that inserts into the outbox of a schema."""
    assert _SCHEMA.fullmatch(schema)
    return _INSERT.format(schema=schema)


def arguments_of(event: AuditEvent) -> tuple[object, ...]:
    """Return the arguments of the statement, with the origin of the call being served."""
    origin = current_origin()
    details = dict(event.details)
    if origin.token_id:
        details.setdefault("service_token_id", origin.token_id)
    return (
        event.action,
        event.outcome,
        event.object_id,
        event.actor_user_id or origin.user_id,
        event.subject_user_id,
        json.dumps(details),
        origin.address,
    )


async def record(connection: Connection, schema: str, event: AuditEvent) -> None:
    """Insert an event; call it inside the transaction of the change."""
    await connection.execute(insert_statement(schema), *arguments_of(event))
