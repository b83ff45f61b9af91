"""Calls the methods of users, groups and service tokens, which this process serves itself."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from gateway.api.transcoded_route import Call
from gateway.identity.wiring import Servicers
from parley.identity import Caller, ServiceName
from parley.rpc import serving

#: Service -> its servicer in `Servicers`.
SERVICERS: Final[Mapping[str, str]] = {
    "parley.api.identity.v1.GroupService": "groups",
    "parley.api.identity.v1.ServiceTokenService": "tokens",
    "parley.api.identity.v1.UserService": "users",
}
CALL_S: Final = 30.0


class IdentityCalls:
    """Calls servicers of this process for users."""

    def __init__(self, servicers: Servicers) -> None:
        self._servicers = servicers

    async def __call__(self, call: Call) -> Any:
        """Return the response message.

        Raises:
            IdentityError: The call is refused.
        """
        name = call.method.removeprefix("/")
        service, _, method = name.partition("/")
        servicer = getattr(self._servicers, SERVICERS[service])
        handler: Callable[..., Awaitable[Any]] = getattr(servicer, method)
        caller = Caller(
            service=ServiceName.GATEWAY,
            user=call.user,
            scopes=frozenset(),
            token_id=None,
            name=ServiceName.GATEWAY,
        )
        with serving(caller, method=name, timeout_s=call.timeout_s or CALL_S):
            # Its methods do not use the context of a gRPC server.
            return await handler(call.request, None)
