"""Serves the audit log: recording for services, reading for administrators and auditors."""

import json
from collections.abc import AsyncIterator
from datetime import UTC
from typing import Final

import grpc
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.audit_log.engine.pruning import AuditRetention, RetentionReport
from gateway.audit_log.engine.verifying import LogVerification
from gateway.audit_log.errors import AuditFilterInvalid
from gateway.audit_log.store.appending import AuditLog, DeliveredEvent
from gateway.audit_log.store.reading import AuditFilter, AuditReader
from parley.api.identity.v1 import audit_log_pb2
from parley.api.identity.v1 import audit_log_service_pb2 as api
from parley.api.identity.v1.audit_log_service_pb2_grpc import AuditLogServiceServicer
from parley.audit_log import (
    AuditAction,
    AuditedLine,
    AuditEvent,
    AuditOutcome,
    AuditProblemKind,
    AuditVerification,
)
from parley.audit_log.export import encode_line
from parley.contract.validation import violations_of
from parley.postgres import Database
from parley.rpc import Violation, current_caller

LIST_DEFAULT: Final = 50
OUTCOMES: Final = {
    outcome: audit_log_pb2.AuditOutcome.Value(f"AUDIT_OUTCOME_{outcome.name}")
    for outcome in AuditOutcome
}
KINDS: Final = {
    kind: audit_log_pb2.AuditProblemKind.Value(f"AUDIT_PROBLEM_KIND_{kind.name}")
    for kind in AuditProblemKind
}


class AuditLogServicer(AuditLogServiceServicer):
    """Serves the audit log."""

    def __init__(
        self,
        database: Database,
        audit_log: AuditLog,
        reader: AuditReader,
        verification: LogVerification,
        retention: RetentionReport,
    ) -> None:
        self._database = database
        self._audit_log = audit_log
        self._reader = reader
        self._verification = verification
        self._retention = retention

    async def RecordAuditEvents(  # noqa: N802 (the name is the proto's)
        self, request: api.RecordAuditEventsRequest, context: grpc.aio.ServicerContext
    ) -> api.RecordAuditEventsResponse:
        """Append events of another service."""
        service = current_caller().name
        events = [_delivered(event, service) for event in request.events]
        async with self._database.transaction() as connection:
            for event in events:
                await self._audit_log.append_delivered(connection, event)
        return api.RecordAuditEventsResponse()

    async def ListAuditEntries(  # noqa: N802 (the name is the proto's)
        self, request: api.ListAuditEntriesRequest, context: grpc.aio.ServicerContext
    ) -> api.ListAuditEntriesResponse:
        """List entries, newest first."""
        _refuse_invalid(request)
        size = request.page_size or LIST_DEFAULT
        wanted = AuditFilter(
            user_id=request.user_id,
            action=request.action,
            object_id=request.object_id,
            from_at=request.start.ToDatetime(tzinfo=UTC) if request.HasField("start") else None,
            until_at=request.end.ToDatetime(tzinfo=UTC) if request.HasField("end") else None,
        )
        before_seq = int(request.page_token) if request.page_token else None
        lines = await self._reader.page(wanted, before_seq=before_seq, limit=size + 1)
        has_more = len(lines) > size
        return api.ListAuditEntriesResponse(
            entries=map(_entry_to_proto, lines[:size]),
            next_page_token=str(lines[size - 1].entry.seq) if has_more else "",
        )

    async def ExportAuditLog(  # noqa: N802 (the name is the proto's)
        self, request: api.ExportAuditLogRequest, context: grpc.aio.ServicerContext | None
    ) -> AsyncIterator[api.ExportAuditLogResponse]:
        """Read all of the log, which includes the entry of this export."""
        async with self._database.transaction() as connection:
            await self._audit_log.append(connection, AuditEvent(AuditAction.AUDIT_LOG_EXPORTED))
        until_seq, _ = await self._reader.head()
        async for lines in self._reader.batches(until_seq=until_seq):
            yield api.ExportAuditLogResponse(lines=b"".join(map(encode_line, lines)))

    async def VerifyAuditLog(  # noqa: N802 (the name is the proto's)
        self, request: api.VerifyAuditLogRequest, context: grpc.aio.ServicerContext
    ) -> api.VerifyAuditLogResponse:
        """Verify the whole chain."""
        found = await self._verification.run()
        return api.VerifyAuditLogResponse(verification=_verification_to_proto(found))

    async def GetAuditRetention(  # noqa: N802 (the name is the proto's)
        self, request: api.GetAuditRetentionRequest, context: grpc.aio.ServicerContext
    ) -> api.GetAuditRetentionResponse:
        """Say what pruning did and would do."""
        _refuse_invalid(request)
        found = await self._retention.of(request.days)
        return api.GetAuditRetentionResponse(retention=_retention_to_proto(found))


def _refuse_invalid(request: Message) -> None:
    """Check a request of HTTP, which does not pass the checks of a gRPC server."""
    wrong = violations_of(request)
    if wrong:
        raise AuditFilterInvalid(*(Violation(each.field, each.description) for each in wrong))


def _delivered(event: audit_log_pb2.AuditEvent, service: str) -> DeliveredEvent:
    is_refused = event.outcome == audit_log_pb2.AUDIT_OUTCOME_REFUSED
    recorded = AuditEvent(
        event.action,
        event.object_id,
        event.subject_user_id.lower() or None,
        event.actor_user_id.lower() or None,
        dict(event.details),
        AuditOutcome.REFUSED if is_refused else AuditOutcome.DONE,
    )
    at = event.at.ToDatetime(tzinfo=UTC)
    return DeliveredEvent(event.event_id.lower(), at, service, recorded, event.address)


def _entry_to_proto(line: AuditedLine) -> audit_log_pb2.AuditEntry:
    entry, at = line.entry, Timestamp()
    at.FromDatetime(entry.at)
    return audit_log_pb2.AuditEntry(
        seq=entry.seq,
        event_id=entry.id,
        at=at,
        service=entry.service,
        action=entry.action,
        outcome=OUTCOMES[AuditOutcome(entry.outcome)],
        object_id=line.object_id,
        actor_id="" if line.actor is None else line.actor.user_id,
        subject_id="" if line.subject is None else line.subject.user_id,
        details_json=json.dumps(dict(entry.details), sort_keys=True),
        address=line.address or "",
        hash=entry.hash.hex(),
    )


def _verification_to_proto(found: AuditVerification) -> audit_log_pb2.AuditVerification:
    return audit_log_pb2.AuditVerification(
        is_intact=found.is_intact,
        entries=found.entries,
        last_seq=found.last_seq,
        head_hash=found.head_hash.hex(),
        signed_seq=found.signed_seq,
        unsealed=found.unsealed,
        problems=[
            audit_log_pb2.AuditProblem(
                kind=KINDS[each.kind], seq=each.seq, description=each.description
            )
            for each in found.problems
        ],
        checkpoint_seq=0 if found.checkpoint is None else found.checkpoint.seq,
    )


def _retention_to_proto(found: AuditRetention) -> audit_log_pb2.AuditRetention:
    retention = audit_log_pb2.AuditRetention(
        retention_days=found.retention_days,
        days=found.days,
        old_entries=found.old.entries,
        old_seq=found.old.seq,
    )
    if found.checkpoint is not None:
        retention.checkpoint_seq = found.checkpoint.seq
        retention.checkpoint_at.FromDatetime(found.checkpoint.at)
    return retention
