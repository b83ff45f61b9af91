"""Implements `McpAuthorizationService`: logins of the user whom the caller's token names."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

from mcpgateway.oauth.domain.grants import GrantStatus, status_text
from mcpgateway.oauth.engine.logins import LoginAnswer, LoginRequest, UserLogins
from mcpgateway.oauth.errors import NotOAuth
from mcpgateway.oauth.store.grants import GrantStore
from mcpgateway.servers.access import Access, CallerContext
from mcpgateway.servers.domain import AuthKind, ChatContext, Server
from mcpgateway.servers.errors import InvalidRequest
from mcpgateway.servers.store import Servers
from parley.api.mcp.v1 import authorization_service_pb2 as api
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1.authorization_service_pb2_grpc import McpAuthorizationServiceServicer
from parley.clock import Clock
from parley.rpc import current_caller

SHA256_BYTES: Final = 32
LOGINS_MAX: Final = 1000


class AuthorizationServicer(McpAuthorizationServiceServicer):
    """Serves logins.

    Args:
        servers: The stored servers.
        access: Who may use them.
        logins: Begins, completes and gives up logins.
        grants: The stored grants.
        given_up: Ends what a user does at a server, in all processes.
        clock: The clock of expiries.
        changed: Announces that the tools of a server changed for somebody, to all processes.
    """

    def __init__(
        self,
        servers: Servers,
        access: Access,
        logins: UserLogins,
        grants: GrantStore,
        given_up: Callable[[str, str], Awaitable[None]],
        clock: Clock,
        changed: Callable[[str, int], None],
    ) -> None:
        self._servers = servers
        self._access = access
        self._logins = logins
        self._grants = grants
        self._given_up = given_up
        self._clock = clock
        self._changed = changed

    async def BeginAuthorization(  # noqa: N802 (the name is the proto's)
        self, request: api.BeginAuthorizationRequest, context: Any
    ) -> api.BeginAuthorizationResponse:
        """Begin a login."""
        if len(request.browser_binding_sha256) != SHA256_BYTES:
            raise InvalidRequest({"browser_binding_sha256": f"give {SHA256_BYTES} bytes"})
        server = await self._usable(request.server_id)
        begun = await self._logins.begin(
            server,
            LoginRequest(
                request_id=request.request_id,
                user_id=_user_id(),
                browser_sha256=request.browser_binding_sha256,
                redirect_uri=request.redirect_uri,
                document_url=request.client_document_url,
            ),
        )
        response = api.BeginAuthorizationResponse(authorization_url=begun.url)
        response.expires_at.FromDatetime(begun.expires_at)
        return response

    async def CompleteAuthorization(  # noqa: N802 (the name is the proto's)
        self, request: api.CompleteAuthorizationRequest, context: Any
    ) -> api.CompleteAuthorizationResponse:
        """Complete a login with what the browser brought back."""
        server, grant = await self._logins.complete(
            LoginAnswer(
                request_id=request.request_id,
                user_id=_user_id(),
                state=request.state,
                code=request.code,
                issuer=request.issuer if request.HasField("issuer") else None,
                error=request.error,
                error_description=request.error_description,
                browser_binding=request.browser_binding,
            )
        )
        self._changed(server.id, server.version)
        status = status_to_proto(grant.status(self._clock.now()))
        return api.CompleteAuthorizationResponse(server_id=server.id, status=status)

    async def Disconnect(  # noqa: N802 (the name is the proto's)
        self, request: api.DisconnectRequest, context: Any
    ) -> api.DisconnectResponse:
        """Give up a login; also at a server that the user may no longer use."""
        was_connected, revocation = await self._logins.disconnect(request.server_id, _user_id())
        if was_connected:
            await self._given_up(request.server_id, _user_id())
            found = await self._servers.find([request.server_id])
            for server in found.values():
                self._changed(server.id, server.version)
        return api.DisconnectResponse(
            was_connected=was_connected,
            revocation=api.RevocationOutcome.Value(f"REVOCATION_OUTCOME_{revocation}"),
        )

    async def GetAuthorizationStatus(  # noqa: N802 (the name is the proto's)
        self, request: api.GetAuthorizationStatusRequest, context: Any
    ) -> api.GetAuthorizationStatusResponse:
        """Return the state of a login, as stored."""
        server = await self._usable(request.server_id)
        if server.settings.auth_kind is not AuthKind.OAUTH2:
            raise NotOAuth(server.id)
        grant, now = await self._grants.find(server, _user_id()), self._clock.now()
        status = GrantStatus.NOT_CONNECTED if grant is None else grant.status(now)
        response = api.GetAuthorizationStatusResponse(
            status=status_to_proto(status), message=status_text(grant, server, now)[:1024]
        )
        if grant is not None:
            response.granted_scopes.extend(sorted(grant.granted_scopes))
            response.missing_scopes.extend(sorted(grant.missing_scopes))
            _set_expiry(response, grant.expires_at)
        return response

    async def ListLogins(  # noqa: N802 (the name is the proto's)
        self, request: api.ListLoginsRequest, context: Any
    ) -> api.ListLoginsResponse:
        """Return the caller's logins, also at servers that they may no longer use."""
        caller, now = CallerContext(_user_id(), ChatContext()), self._clock.now()
        grants = await self._grants.of_user(caller.user_id, LOGINS_MAX)
        found = await self._servers.find([grant.server_id for grant in grants])
        response = api.ListLoginsResponse()
        # A server that was deleted meanwhile took its logins with it.
        for grant in grants:
            if (server := found.get(grant.server_id)) is None:
                continue
            response.logins.add(
                server_id=server.id,
                slug=server.settings.slug,
                display_name=server.settings.display_name,
                status=status_to_proto(grant.status(now)),
                is_usable=await self._access.error(server.id, server, caller) is None,
            )
        response.logins.sort(key=lambda login: login.slug)
        return response

    async def _usable(self, server_id: str) -> Server:
        """Return a server that the caller may use.

        Raises:
            McpError: They may not.
        """
        found = await self._servers.find([server_id])
        server = found.get(server_id)
        problem = await self._access.error(
            server_id, server, CallerContext(_user_id(), ChatContext())
        )
        if problem is not None or server is None:
            raise problem or AssertionError("a missing server is refused")
        return server


def status_to_proto(status: GrantStatus) -> "server_pb2.AuthorizationStatus.ValueType":
    """Return the state of a login in the proto."""
    return server_pb2.AuthorizationStatus.Value(f"AUTHORIZATION_STATUS_{status}")


def _set_expiry(response: api.GetAuthorizationStatusResponse, expires_at: datetime | None) -> None:
    if expires_at is not None:
        response.expires_at.FromDatetime(expires_at)


def _user_id() -> str:
    user = current_caller().user
    return "" if user is None else user.id
