"""Implements `McpServerService`: managing and reading servers."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from mcpgateway.admin.convert import (
    credentials_from_proto,
    enum_from_proto,
    server_to_proto,
    settings_from_proto,
)
from mcpgateway.runtime.call_executor import CallExecutor
from mcpgateway.runtime.journal import Journal
from mcpgateway.servers.domain import Availability, Server, ServerId
from mcpgateway.servers.errors import InvalidRequest, ServerNotFound
from mcpgateway.servers.store import RequestRecord, ServerFilter, Servers
from mcpgateway.servers.validation import check_server
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.api.mcp.v1.server_service_pb2_grpc import McpServerServiceServicer
from parley.identity import Caller, Role
from parley.rpc import current_caller

PAGE_SIZE: Final = 50
PAGE_SIZE_MAX: Final = 100
READERS_OF_ALL: Final = frozenset({Role.OWNER, Role.ADMIN, Role.AUDITOR})


class ServerServicer(McpServerServiceServicer):
    """Serves the stored servers; methods that are not implemented return UNIMPLEMENTED."""

    def __init__(
        self,
        servers: Servers,
        journal: Journal,
        executor: CallExecutor,
        new_id: Callable[[], str],
        changed: Callable[[], None],
    ) -> None:
        self._servers = servers
        self._journal = journal
        self._executor = executor
        self._new_id = new_id
        self._changed = changed

    async def CreateServer(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateServerRequest, context: Any
    ) -> api.CreateServerResponse:
        """Store a new server."""
        settings, problems = settings_from_proto(request.settings)
        credentials = credentials_from_proto(request.credentials, settings)
        if not 1 <= len(request.request_id) <= 128:
            problems["request_id"] = "give 1 to 128 characters"
        check_server(settings, credentials, problems)
        record = RequestRecord(_owner_of_requests(), request.request_id, _sha256(request))
        server = await self._servers.create(ServerId(self._new_id()), settings, credentials, record)
        self._changed()
        return api.CreateServerResponse(server=server_to_proto(server, is_full=True))

    async def DeleteServer(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteServerRequest, context: Any
    ) -> api.DeleteServerResponse:
        """Delete a server and cancel its calls."""
        await self._servers.delete(request.server_id)
        self._changed()
        await self._journal.cancel_calls_of(request.server_id)
        self._executor.cancel_calls_of(request.server_id)
        return api.DeleteServerResponse()

    async def GetServer(  # noqa: N802 (the name is the proto's)
        self, request: api.GetServerRequest, context: Any
    ) -> api.GetServerResponse:
        """Return one server."""
        server = await self._servers.get(request.server_id)
        is_full = _reads_all()
        if not (is_full or server.settings.is_enabled):
            raise ServerNotFound(request.server_id)
        return api.GetServerResponse(server=server_to_proto(server, is_full=is_full))

    async def ListServers(  # noqa: N802 (the name is the proto's)
        self, request: api.ListServersRequest, context: Any
    ) -> api.ListServersResponse:
        """Return a page of servers."""
        is_full = _reads_all()
        if not 0 <= request.page_size <= PAGE_SIZE_MAX or len(request.query) > 128:
            raise InvalidRequest({"page_size": "give 1 to 100, and a query of at most 128"})
        size = request.page_size or PAGE_SIZE
        wanted = ServerFilter(
            after=_place_of(request.page_token),
            availability=enum_from_proto(Availability, request.availability),
            enabled_only=request.enabled_only or not is_full,
            query=request.query.replace("\0", ""),
        )
        found = await self._servers.page(wanted, size + 1)
        page = found[:size]
        return api.ListServersResponse(
            servers=[server_to_proto(server, is_full=is_full) for server in page],
            next_page_token=_token_of(page[-1]) if len(found) > size else "",
        )


def _reads_all() -> bool:
    user = current_caller().user
    return user is not None and user.role in READERS_OF_ALL


def _owner_of_requests() -> str:
    """Return the namespace of request ids: the user, or the calling service itself."""
    caller: Caller = current_caller()
    return caller.name if caller.user is None else f"{caller.name}:{caller.user.id}"


def _sha256(request: api.CreateServerRequest) -> bytes:
    """Return the hash that a repeated request must match; it contains no secret."""
    return hashlib.sha256(request.settings.SerializeToString(deterministic=True)).digest()


def _token_of(server: Server) -> str:
    place = msgspec.json.encode((server.settings.display_name, server.id))
    return base64.urlsafe_b64encode(place).decode()


def _place_of(token: str) -> tuple[str, str] | None:
    if not token:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token), type=tuple[str, str])
    except (ValueError, msgspec.MsgspecError):
        raise InvalidRequest({"page_token": "is not from a previous response"}) from None
