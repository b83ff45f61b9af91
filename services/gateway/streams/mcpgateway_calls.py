"""Calls the methods of mcpgateway that transcoded routes name."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import grpc

from gateway.api.transcoded_route import Call
from gateway.http.problems.errors import UpstreamProblem
from parley.api.mcp.v1.authorization_service_pb2_grpc import McpAuthorizationServiceStub
from parley.api.mcp.v1.server_service_pb2_grpc import McpServerServiceStub
from parley.api.mcp.v1.tool_service_pb2_grpc import McpToolServiceStub
from parley.rpc import Channels, Problem, acting_for, problem_of, ranked

#: Service -> its stub.
STUBS: Final[Mapping[str, Callable[[grpc.aio.Channel], Any]]] = {
    "parley.api.mcp.v1.McpAuthorizationService": McpAuthorizationServiceStub,
    "parley.api.mcp.v1.McpServerService": McpServerServiceStub,
    "parley.api.mcp.v1.McpToolService": McpToolServiceStub,
}
CALL_S: Final = 30.0
#: After these another process is tried: this one does not answer, stops, or its clock differs.
FAILOVER_REASONS: Final = frozenset({"UNAVAILABLE", "DRAINING"})

_log = logging.getLogger(__name__)


class McpGatewayCalls:
    """Calls mcpgateway for users: the process that the user prefers first, then the others."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def __call__(self, call: Call) -> Any:
        """Return the response message.

        A retry is safe: every method has a request id, or changes nothing.

        Raises:
            UpstreamProblem: The response is an error, or no process responds.
        """
        refusal = UpstreamProblem(Problem.of("UPSTREAM_UNAVAILABLE", "no mcpgateway is known"))
        service, _, name = call.method.removeprefix("/").partition("/")
        with acting_for(call.user):
            for address in ranked(call.routing_key, self._channels.addresses):
                stub = STUBS[service](self._channels.at(address))
                method: Callable[..., Awaitable[Any]] = getattr(stub, name)
                try:
                    return await method(call.request, timeout=call.timeout_s or CALL_S)
                except grpc.aio.AioRpcError as error:
                    refusal = UpstreamProblem(problem_of(error))
                    is_unauthenticated = error.code() is grpc.StatusCode.UNAUTHENTICATED
                    if not is_unauthenticated and refusal.problem.reason not in FAILOVER_REASONS:
                        raise refusal from error
                    _log.warning("a mcpgateway does not answer: %s", refusal)
        raise refusal
