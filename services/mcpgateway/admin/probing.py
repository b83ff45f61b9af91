"""Probes of saved servers and of drafts, as answers."""

from collections.abc import Awaitable, Callable

from mcpgateway.client.probe import Probe, ProbeReport
from mcpgateway.client.sessions import Sessions
from mcpgateway.runtime.convert import reason_to_proto
from mcpgateway.servers.access import Access, CallerContext
from mcpgateway.servers.domain import (
    ChatContext,
    Credentials,
    Reason,
    Server,
    ServerId,
    ServerSettings,
    ServerState,
    Target,
)
from mcpgateway.servers.errors import NeedsConnect
from mcpgateway.servers.health import ServerHealth, state_of
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.clock import Clock
from parley.egress.policy import Policy

OF_USER = frozenset({Reason.NEEDS_CONNECT, Reason.NEEDS_RECONNECT, Reason.MISSING_USER_VALUES})


class Probing:
    """Contacts servers, and records the health of saved ones."""

    def __init__(
        self,
        sessions: Sessions,
        access: Access,
        health: ServerHealth,
        *,
        policy: Policy,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._sessions = sessions
        self._access = access
        self._health = health
        self._policy = policy
        self._clock = clock
        self._new_id = new_id

    async def of_server(self, server: Server, user_id: str) -> api.ProbeServerResponse:
        """Contact a saved server with its credentials and those of a user."""
        caller = CallerContext(user_id, ChatContext())
        report = await self._run(server, lambda: self._access.open_target(server, caller))
        if report.failure is None and report.catalogue is not None:
            await self._health.is_well(server.id, len(report.catalogue.tools))
        elif report.failure is not None and report.failure.reason not in OF_USER:
            await self._health.failed(server.id, report.failure)
        return _response(server.settings, report)

    async def of_draft(
        self, settings: ServerSettings, credentials: Credentials, user_id: str
    ) -> api.ProbeServerResponse:
        """Contact a server that is not saved."""
        now = self._clock.now()
        server = Server(ServerId(self._new_id()), 1, settings, bool(credentials), (), now, now)

        async def open_target() -> Target:
            if credentials.oauth_client_secret or settings.oauth is not None:
                raise NeedsConnect(server.id)
            return Target(server, credentials.headers, user_id, "")

        try:
            return _response(settings, await self._run(server, open_target))
        finally:
            await self._sessions.retire(server.id, 2)

    async def _run(
        self, server: Server, open_target: Callable[[], Awaitable[Target]]
    ) -> ProbeReport:
        probe = Probe(
            server,
            open_target,
            upstream=self._sessions,
            policy=self._policy,
            clock=self._clock,
        )
        return await probe.run()


def _response(settings: ServerSettings, report: ProbeReport) -> api.ProbeServerResponse:
    tools = () if report.catalogue is None else report.catalogue.tools
    return api.ProbeServerResponse(
        state=server_pb2.ServerState.Value(f"SERVER_STATE_{_state(report).name}"),
        phases=[
            api.ProbePhase(
                kind=api.ProbePhaseKind.Value(f"PROBE_PHASE_KIND_{phase.kind.name}"),
                duration_ms=phase.duration_ms,
                reason=reason_to_proto(phase.reason),
                detail=phase.detail,
            )
            for phase in report.phases
        ],
        protocol_version=report.protocol_version,
        tool_names=sorted(name for name in tools if settings.allows_tool(name)),
    )


def _state(report: ProbeReport) -> ServerState:
    if report.failure is None:
        return ServerState.READY
    if report.failure.reason in OF_USER:
        return ServerState.NEEDS_AUTHORIZATION
    return state_of(report.failure)
