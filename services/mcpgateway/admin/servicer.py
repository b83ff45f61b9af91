"""Implements `McpServerService`: managing and reading servers."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from google.protobuf.message import Message

from mcpgateway.admin.convert import (
    ServerView,
    credentials_from_proto,
    enum_from_proto,
    merged_settings,
    server_to_proto,
    settings_from_proto,
)
from mcpgateway.admin.excluded_calls import ExcludedCalls
from mcpgateway.admin.pages import place_of, token_of
from mcpgateway.admin.probing import Probing
from mcpgateway.oauth.domain.grants import GrantStatus
from mcpgateway.oauth.engine.grants import UserGrants
from mcpgateway.runtime.call_executor import CallExecutor
from mcpgateway.runtime.catalogues import CatalogueCache
from mcpgateway.runtime.journal import Journal
from mcpgateway.servers.access import Access
from mcpgateway.servers.changes import ServerChanges
from mcpgateway.servers.definitions import Definitions
from mcpgateway.servers.domain import Availability, Credentials, Server, ServerId, ServerSettings
from mcpgateway.servers.errors import InvalidRequest, ServerNotFound, SlugInUse
from mcpgateway.servers.groups import Grantees
from mcpgateway.servers.health import ServerHealth
from mcpgateway.servers.oauth_validation import oauth_problems
from mcpgateway.servers.store import RequestRecord, ServerFilter, Servers, is_uuid
from mcpgateway.servers.user_values import UserValues
from mcpgateway.servers.validation import (
    check_origins,
    check_server,
    check_user_values,
    credential_origins,
    origins_text,
)
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.api.mcp.v1.server_service_pb2_grpc import McpServerServiceServicer
from parley.egress.policy import Policy
from parley.identity import Caller, Role
from parley.rpc import current_caller
from parley.telemetry import audit

PAGE_SIZE: Final = 50
READERS_OF_ALL: Final = frozenset({Role.OWNER, Role.ADMIN, Role.AUDITOR})
CREDENTIALS: Final = "credentials"
GRANTEES: Final = frozenset({"user_ids", "group_ids"})


@dataclass(frozen=True, slots=True)
class Governance:
    """The stores that say more about servers than their settings."""

    access: Access
    values: UserValues
    health: ServerHealth
    definitions: Definitions
    changes: ServerChanges
    grants: UserGrants
    grantees: Grantees
    policy: Policy

    def check(self, settings: ServerSettings, credentials: Credentials) -> None:
        """Reject invalid settings and secrets of a new server.

        Raises:
            InvalidRequest: With every invalid field.
        """
        check_server(settings, credentials, oauth_problems(settings, credentials, self.policy))

    def check_change(
        self, before: ServerSettings, after: ServerSettings, credentials: Credentials
    ) -> None:
        """Reject invalid settings and secrets of a changed server.

        A server whose OAuth settings were stored before they were checked can still be changed in
        other ways, for example switched off.

        Raises:
            InvalidRequest: With every invalid field.
        """
        if (before.auth_kind, before.oauth) == (after.auth_kind, after.oauth):
            check_server(after, credentials, {})
        else:
            self.check(after, credentials)


class ServerServicer(McpServerServiceServicer):
    """Serves the stored servers.

    Args:
        servers: The stored servers.
        governance: What else is stored about them.
        catalogues: Their catalogues in this process.
        journal: The journal of calls.
        executor: The calls of this process.
        probing: Contacts servers.
        new_id: Returns ids of new servers.
        changed: Announces that a server changed, to all processes.
    """

    def __init__(
        self,
        servers: Servers,
        governance: Governance,
        catalogues: CatalogueCache,
        journal: Journal,
        executor: CallExecutor,
        probing: Probing,
        new_id: Callable[[], str],
        changed: Callable[[str, int], None],
    ) -> None:
        self._servers = servers
        self._governance = governance
        self._catalogues = catalogues
        self._journal = journal
        self._calls = ExcludedCalls(journal, executor, governance.access)
        self._probing = probing
        self._new_id = new_id
        self._changed = changed

    async def CreateServer(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateServerRequest, context: Any
    ) -> api.CreateServerResponse:
        """Store a new server."""
        settings = settings_from_proto(request.settings)
        credentials = credentials_from_proto(request.credentials, settings)
        self._governance.check(settings, credentials)
        await self._governance.grantees.require(settings, None)
        record = RequestRecord(_owner_of_requests(), request.request_id, _sha256(request))
        server_id = ServerId(self._new_id())
        server = await self._servers.create(server_id, settings, credentials, record)
        self._changed(server.id, server.version)
        return api.CreateServerResponse(server=await self._shown(server))

    async def UpdateServer(  # noqa: N802 (the name is the proto's)
        self, request: api.UpdateServerRequest, context: Any
    ) -> api.UpdateServerResponse:
        """Change settings, credentials or both; calls that are not allowed any more end."""
        paths = [path for path in request.update_mask.paths if path != CREDENTIALS]
        if not paths and not request.HasField(CREDENTIALS):
            raise InvalidRequest({"update_mask": "name the settings to change"})
        is_used = await self._journal.has_calls_of(request.server_id)
        if not GRANTEES.isdisjoint(paths):
            stored = (await self._servers.get(request.server_id)).settings
            merged = merged_settings(stored, request.settings, paths)
            await self._governance.grantees.require(merged, stored)

        def change(
            before: Server, stored: Credentials
        ) -> tuple[ServerSettings, Credentials | None]:
            settings = merged_settings(before.settings, request.settings, paths)
            if is_used and settings.slug != before.settings.slug:
                raise SlugInUse(before.settings.slug)
            given = _given_credentials(request, before, settings)
            credentials = stored if given is None else given
            self._governance.check_change(before.settings, settings, credentials)
            if given is None:
                _check_key_header(before.settings, settings)
                check_origins(before, settings)
            return settings, given

        record = RequestRecord(_owner_of_requests(), request.request_id, _sha256(request))
        before, after = await self._servers.update(
            request.server_id, request.expected_version, change, record
        )
        if before.version != after.version:
            _record_origins(before, after)
            self._changed(after.id, after.version)
        # Also when the request is repeated, because the first one may have ended before this.
        await self._calls.cancel_excluded(after)
        return api.UpdateServerResponse(server=await self._shown(after))

    async def DeleteServer(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteServerRequest, context: Any
    ) -> api.DeleteServerResponse:
        """Delete a server and cancel its calls."""
        server = await self._servers.delete(request.server_id)
        if server is not None:
            self._changed(server.id, server.version + 1)
        await self._calls.cancel_all(request.server_id)
        return api.DeleteServerResponse()

    async def GetServer(  # noqa: N802 (the name is the proto's)
        self, request: api.GetServerRequest, context: Any
    ) -> api.GetServerResponse:
        """Return one server."""
        return api.GetServerResponse(
            server=await self._shown(await self._visible(request.server_id))
        )

    async def ListServers(  # noqa: N802 (the name is the proto's)
        self, request: api.ListServersRequest, context: Any
    ) -> api.ListServersResponse:
        """Return a page of servers."""
        is_full = _reads_all()
        size = request.page_size or PAGE_SIZE
        place = place_of(request.page_token, tuple[str, str])
        wanted = ServerFilter(
            after=place,
            availability=enum_from_proto(Availability, request.availability),
            enabled_only=request.enabled_only or not is_full,
            query=request.query.replace("\0", ""),
        )
        page: list[Server] = []
        while len(page) <= size:
            found = await self._servers.page(wanted, size + 1)
            shown = found if is_full else await self._allowed(found)
            page += shown
            if len(found) <= size:
                break
            wanted = replace(wanted, after=_place(found[-1]))
        rest, page = page[size:], page[:size]
        return api.ListServersResponse(
            servers=await self._shown_all(page),
            next_page_token=token_of(_place(page[-1])) if rest else "",
        )

    async def ProbeServer(  # noqa: N802 (the name is the proto's)
        self, request: api.ProbeServerRequest, context: Any
    ) -> api.ProbeServerResponse:
        """Contact a server and return how far that went."""
        match request.WhichOneof("target"):
            case "draft":
                settings = settings_from_proto(request.draft.settings)
                credentials = credentials_from_proto(request.draft.credentials, settings)
                self._governance.check(settings, credentials)
                return await self._probing.of_draft(settings, credentials, _user_id())
            case "server_id":
                server = await self._servers.get(request.server_id)
                response = await self._probing.of_server(server, _user_id())
                if response.state == server_pb2.SERVER_STATE_READY:
                    self._catalogues.retry(server.id)
                return response
            case _:
                raise InvalidRequest({"target": "name a server or give a draft"})

    async def ApproveTools(  # noqa: N802 (the name is the proto's)
        self, request: api.ApproveToolsRequest, context: Any
    ) -> api.ApproveToolsResponse:
        """Approve changed definitions as an admin saw them."""
        server = await self._servers.get(request.server_id)
        seen = [(tool.original_name, tool.digest) for tool in request.tools]
        await self._governance.definitions.approve(server, seen, _user_id())
        self._catalogues.expire(server.id)
        self._changed(server.id, server.version)
        pending = await self._governance.definitions.pending(server.id)
        return api.ApproveToolsResponse(quarantined_names=pending)

    async def ListServerChanges(  # noqa: N802 (the name is the proto's)
        self, request: api.ListServerChangesRequest, context: Any
    ) -> api.ListServerChangesResponse:
        """Return a page of changes, the newest first."""
        size = request.page_size or PAGE_SIZE
        before = place_of(request.page_token, str)
        if before is not None and not is_uuid(before):
            raise InvalidRequest({"page_token": "is not from a previous response"})
        found = await self._governance.changes.page(request.server_id, before, size + 1)
        response = api.ListServerChangesResponse(
            next_page_token=token_of(found[size - 1].id) if len(found) > size else ""
        )
        for change in found[:size]:
            message = response.changes.add(
                user_id=change.user_id,
                kind=api.ServerChangeKind.Value(f"SERVER_CHANGE_KIND_{change.kind.name}"),
                version=change.version,
                fields_json=change.fields_json,
            )
            message.changed_at.FromDatetime(change.changed_at)
        return response

    async def SetUserValues(  # noqa: N802 (the name is the proto's)
        self, request: api.SetUserValuesRequest, context: Any
    ) -> api.SetUserValuesResponse:
        """Store the caller's values of headers."""
        server = await self._visible(request.server_id)
        check_user_values(server.settings, request.values)
        await self._governance.values.put(server, _user_id(), dict(request.values))
        self._changed(server.id, server.version)
        return api.SetUserValuesResponse(server=await self._shown(server))

    async def DeleteUserValues(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteUserValuesRequest, context: Any
    ) -> api.DeleteUserValuesResponse:
        """Delete the caller's values of headers; also of a server that they may no longer use."""
        await self._governance.values.delete(request.server_id, _user_id())
        self._changed(request.server_id, 0)
        return api.DeleteUserValuesResponse()

    async def _visible(self, server_id: str) -> Server:
        """Return a server that the caller may see.

        Raises:
            ServerNotFound: There is none.
        """
        server = await self._servers.get(server_id)
        if not _reads_all() and not await self._allowed([server]):
            raise ServerNotFound(server_id)
        return server

    async def _allowed(self, found: Sequence[Server]) -> list[Server]:
        enabled = [server for server in found if server.settings.is_enabled]
        return list((await self._governance.access.visible(enabled, _user_id())).values())

    async def _shown(self, server: Server) -> Any:
        return (await self._shown_all([server]))[0]

    async def _shown_all(self, found: Sequence[Server]) -> list[Any]:
        ids, is_full = [server.id for server in found], _reads_all()
        values = await self._governance.values.headers_of(_user_id(), ids)
        health = await self._governance.health.read(ids) if is_full else {}
        pending = await self._governance.definitions.pending_counts(ids) if is_full else {}
        logins = await self._governance.grants.statuses(_user_id(), found)
        return [
            server_to_proto(
                server,
                ServerView(
                    is_full,
                    values.get(server.id, ()),
                    health.get(server.id),
                    pending.get(server.id, 0),
                    logins.get(server.id, GrantStatus.NOT_CONNECTED),
                ),
            )
            for server in found
        ]


def _given_credentials(
    request: api.UpdateServerRequest, before: Server, settings: ServerSettings
) -> Credentials | None:
    """Return the credentials to store; None keeps the stored ones."""
    if request.HasField(CREDENTIALS):
        return credentials_from_proto(request.credentials, settings)
    return None if settings.auth_kind is before.settings.auth_kind else Credentials()


def _check_key_header(before: ServerSettings, after: ServerSettings) -> None:
    """Reject another header for a key that is stored under the old one."""
    if before.api_key_header != after.api_key_header:
        raise InvalidRequest({CREDENTIALS: "give the API key again, because its header changes"})


def _record_origins(before: Server, after: Server) -> None:
    """Log for auditors that credentials are sent elsewhere than before."""
    old, new = credential_origins(before.settings), credential_origins(after.settings)
    if old != new:
        audit(
            "mcp_server.origin_changed",
            user_id=_user_id(),
            server_id=after.id,
            old_origin=origins_text(old),
            new_origin=origins_text(new),
        )


def _reads_all() -> bool:
    user = current_caller().user
    return user is not None and user.role in READERS_OF_ALL


def _user_id() -> str:
    user = current_caller().user
    return "" if user is None else user.id


def _owner_of_requests() -> str:
    """Return the namespace of request ids: the user, or the calling service itself."""
    caller: Caller = current_caller()
    return caller.name if caller.user is None else f"{caller.name}:{caller.user.id}"


def _sha256(request: Message) -> bytes:
    """Return the hash that a repeated request must match; it contains no secret."""
    hashed = type(request)()
    hashed.CopyFrom(request)
    hashed.ClearField(CREDENTIALS)
    return hashlib.sha256(hashed.SerializeToString(deterministic=True)).digest()


def _place(server: Server) -> tuple[str, str]:
    return (server.settings.display_name, server.id)
