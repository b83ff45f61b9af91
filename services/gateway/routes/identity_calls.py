"""Calls the methods of users, groups and credentials, which this process serves itself."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from gateway.api.transcoded_route import Call
from gateway.identity.wiring import Servicers
from parley.identity import Caller, ServiceName, User
from parley.rpc import serving

#: Service -> its servicer in `Servicers`.
SERVICERS: Final[Mapping[str, str]] = {
    "parley.api.identity.v1.AccountExportService": "account_exports",
    "parley.api.identity.v1.ApiKeyService": "api_keys",
    "parley.api.identity.v1.AuditLogService": "audit_log",
    "parley.api.identity.v1.GroupService": "groups",
    "parley.api.identity.v1.LinkedIdentityService": "linked_identities",
    "parley.api.identity.v1.OidcIssuerService": "oidc_issuers",
    "parley.api.identity.v1.SecondFactorService": "second_factors",
    "parley.api.identity.v1.ServiceTokenService": "tokens",
    "parley.api.identity.v1.SessionService": "sessions",
    "parley.api.identity.v1.SignInLinkService": "sign_in_links",
    "parley.api.identity.v1.SignInService": "sign_in",
    "parley.api.identity.v1.UserService": "users",
}
CALL_S: Final = 30.0
STREAM_S: Final = 3600.0


class IdentityCalls:
    """Calls servicers of this process for users."""

    def __init__(self, servicers: Servicers) -> None:
        self._servicers = servicers

    async def __call__(self, call: Call) -> Any:
        """Return the response message.

        Raises:
            IdentityError: The call is refused.
        """
        return await self._answer(call.method, call.request, call.user, call.timeout_s)

    async def for_user(self, method: str, request: Any, user: User) -> Any:
        """Return the response of a method to a user.

        Raises:
            IdentityError: The call is refused.
        """
        return await self._answer(method, request, user, None)

    async def for_nobody(self, method: str, request: Any) -> Any:
        """Return the response of a method that is called without a user.

        Raises:
            IdentityError: The call is refused.
        """
        return await self._answer(method, request, None, None)

    async def stream(self, call: Call) -> AsyncIterator[Any]:
        """Yield the messages of a method that answers with a stream.

        Raises:
            IdentityError: The call is refused.
        """
        handler = self._handler(call.method)
        timeout_s = call.timeout_s or STREAM_S
        with serving(_caller(call.user), method=call.method[1:], timeout_s=timeout_s):
            async for message in handler(call.request, None):
                yield message

    async def _answer(
        self, method: str, request: Any, user: User | None, timeout_s: float | None
    ) -> Any:
        handler = self._handler(method)
        with serving(_caller(user), method=method[1:], timeout_s=timeout_s or CALL_S):
            # Its methods do not use the context of a gRPC server.
            return await handler(request, None)

    def _handler(self, method: str) -> Callable[..., Any]:
        service, _, called = method.removeprefix("/").partition("/")
        handler: Callable[..., Any] = getattr(getattr(self._servicers, SERVICERS[service]), called)
        return handler


def _caller(user: User | None) -> Caller:
    return Caller(
        service=ServiceName.GATEWAY,
        user=user,
        scopes=frozenset(),
        token_id=None,
        name=ServiceName.GATEWAY,
    )
