"""Delivers the events in a service's outbox to the gateway, which appends them to the chain."""

import logging
from typing import Any, Final

import grpc
import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.identity.v1 import audit_log_pb2
from parley.api.identity.v1 import audit_log_service_pb2 as api
from parley.api.identity.v1.audit_log_service_pb2_grpc import AuditLogServiceStub
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable, Pool
from parley.rpc import Channels, NoAddress, problem_of
from parley.telemetry import OutageLog

BATCH: Final = 100
INTERVAL_S: Final = 1.0
PAUSE_S: Final = 5.0

# The oldest events that wait.
# May run: process.
_SELECT: Final = """
    SELECT seq, id, at, action, outcome, object_id, actor_user_id, subject_user_id,
        details::text AS details, address
    FROM {schema}.audit_outbox ORDER BY seq LIMIT $1
"""
# Events that the gateway has.
# May run: process.
_DELETE: Final = "DELETE FROM {schema}.audit_outbox WHERE seq = ANY ($1::bigint[])"

_log = logging.getLogger(__name__)


class AuditDelivery:
    """Sends events; all processes of a service may, because the gateway appends each once.

    Args:
        pool: The database of the service.
        schema: Its schema, with the table `audit_outbox`.
        gateways: The gateways.
        clock: The clock.
    """

    def __init__(self, pool: Pool, schema: str, gateways: Channels, clock: Clock) -> None:
        self._pool = pool
        self._select = _SELECT.format(schema=schema)
        self._delete = _DELETE.format(schema=schema)
        self._gateways = gateways
        self._schema = schema
        self._clock = clock
        self._outages = OutageLog(_log, clock, "audit events wait to be delivered")

    async def run(self) -> None:
        """Deliver until cancelled; while no gateway or no database answers, events wait."""
        while True:
            try:
                while await self.deliver() == BATCH:
                    pass
                self._outages.succeeded()
                await self._clock.sleep(INTERVAL_S)
            except NoAddress:
                await self._clock.sleep(PAUSE_S)
            except grpc.aio.AioRpcError as error:
                self._outages.failed(problem_of(error).message)
                await self._clock.sleep(PAUSE_S)
            except DatabaseUnavailable as outage:
                self._outages.failed(outage)
                await self._clock.sleep(PAUSE_S)

    async def deliver(self) -> int:
        """Deliver one batch; return how many events it had.

        Raises:
            NoAddress: No gateway is known.
            AioRpcError: No gateway answers.
            DatabaseUnavailable: The database does not answer.
        """
        rows = await self._pool.fetch(self._select, BATCH)
        if not rows:
            return 0
        stub = AuditLogServiceStub(self._gateways.for_key(self._schema))
        await stub.RecordAuditEvents(
            api.RecordAuditEventsRequest(events=[_event(row) for row in rows])
        )
        await self._pool.execute(self._delete, [row["seq"] for row in rows])
        return len(rows)


def _event(row: Any) -> audit_log_pb2.AuditEvent:
    at = Timestamp()
    at.FromDatetime(row["at"])
    return audit_log_pb2.AuditEvent(
        event_id=str(row["id"]),
        at=at,
        action=row["action"],
        outcome=audit_log_pb2.AuditOutcome.Value(f"AUDIT_OUTCOME_{row['outcome'].upper()}"),
        object_id=row["object_id"],
        actor_user_id=str(row["actor_user_id"] or ""),
        subject_user_id=str(row["subject_user_id"] or ""),
        details=msgspec.json.decode(row["details"], type=dict[str, str]),
        address=row["address"],
    )
