"""The HTTP route that exports the audit log."""

from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gateway.api.transcoded_route import Call
from gateway.http.authentication import Principal
from gateway.http.request_body import read_query
from gateway.routes.identity_calls import IdentityCalls
from parley.api.identity.v1 import audit_log_service_pb2 as api

EXPORT: Final = "/parley.api.identity.v1.AuditLogService/ExportAuditLog"
MEDIA_TYPE: Final = "application/x-ndjson"


class AuditLogRoutes:
    """The route /audit-log/export."""

    def __init__(self, calls: IdentityCalls) -> None:
        self._calls = calls

    async def export(self, request: Request, principal: Principal) -> Response:
        """Export the whole log."""
        read_query(request)
        user = principal.user
        call = Call(EXPORT, api.ExportAuditLogRequest(), user, user.id, None)
        return StreamingResponse(
            _lines(self._calls.stream(call)),
            media_type=MEDIA_TYPE,
            headers={"content-disposition": 'attachment; filename="audit-log.jsonl"'},
        )


async def _lines(answers: AsyncIterator[api.ExportAuditLogResponse]) -> AsyncIterator[bytes]:
    async for answer in answers:
        yield answer.lines
