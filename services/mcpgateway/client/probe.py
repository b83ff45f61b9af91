"""Contacts a server in phases, and says how far that went and why it went no further."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import httpcore2
import httpx2

from mcpgateway.servers.domain import AuthKind, Catalogue, Reason, Server, Target
from mcpgateway.servers.errors import McpError, MissingUserValues, NeedsConnect, UpstreamFailed
from parley.clock import Clock
from parley.egress.policy import DEFAULT_PORTS, AddressBlocked, Policy
from parley.egress.transport import resolved

T = TypeVar("T")


class PhaseKind(StrEnum):
    """Phases of contact, in order."""

    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"
    AUTHORIZATION = "authorization"
    HANDSHAKE = "handshake"
    LIST_TOOLS = "list_tools"


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase that was tried."""

    kind: PhaseKind
    duration_ms: int
    reason: Reason | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """How far contact went.

    Attributes:
        failure: Why it went no further; None if all phases went well.
    """

    phases: tuple[Phase, ...]
    protocol_version: str = ""
    catalogue: Catalogue | None = None
    failure: UpstreamFailed | None = None


class ProbedUpstream(Protocol):
    """The operations of a probe that speak MCP."""

    async def protocol_version(self, target: Target) -> str:
        """Connect, and return the protocol revision that was agreed on.

        Raises:
            UpstreamFailed: The server does not connect, or not in time.
        """
        ...

    async def list_tools(self, target: Target) -> Catalogue:
        """Return the server's tools.

        Raises:
            UpstreamFailed: It does not respond, or its response is invalid.
        """
        ...


class Probe:
    """One probe of one server."""

    def __init__(
        self,
        server: Server,
        open_target: Callable[[], Awaitable[Target]],
        *,
        upstream: ProbedUpstream,
        policy: Policy,
        clock: Clock,
    ) -> None:
        self._server = server
        self._open_target = open_target
        self._upstream = upstream
        self._policy = policy
        self._clock = clock
        self._phases: list[Phase] = []
        self._version = ""
        self._catalogue: Catalogue | None = None

    async def run(self) -> ProbeReport:
        """Try the phases in order until one fails."""
        failure: UpstreamFailed | None = None
        parts = urlsplit(self._server.settings.url)
        host, scheme = parts.hostname or "", parts.scheme
        port = parts.port or DEFAULT_PORTS[scheme]
        try:
            async with AsyncExitStack() as stack:
                await self._reach(stack, scheme, host, port)
            target = await self._authorized()
            self._version = await self._phase(
                PhaseKind.HANDSHAKE, lambda: self._upstream.protocol_version(target)
            )
            self._catalogue = await self._phase(
                PhaseKind.LIST_TOOLS, lambda: self._upstream.list_tools(target)
            )
        except UpstreamFailed as error:
            failure = error
        return ProbeReport(tuple(self._phases), self._version, self._catalogue, failure)

    async def _reach(self, stack: AsyncExitStack, scheme: str, host: str, port: int) -> None:
        """Resolve the host, connect to a checked address, and agree on TLS."""
        addresses = await self._phase(PhaseKind.RESOLVE, lambda: self._resolve(scheme, host, port))
        _, writer = await self._phase(PhaseKind.CONNECT, lambda: _connect(addresses, port))
        stack.callback(writer.close)
        if scheme == "https":
            context = httpx2.create_ssl_context(trust_env=False)
            await self._phase(
                PhaseKind.TLS, lambda: writer.start_tls(context, server_hostname=host)
            )

    async def _resolve(self, scheme: str, host: str, port: int) -> tuple[str, ...]:
        self._policy.check_request(scheme, host, port)
        addresses = await resolved(host, port)
        self._policy.check_addresses(host, port, addresses)
        return addresses

    async def _authorized(self) -> Target:
        settings = self._server.settings
        if settings.auth_kind is AuthKind.NONE and not settings.user_values:
            return await self._open_target()
        return await self._phase(PhaseKind.AUTHORIZATION, self._open_target)

    async def _phase(self, kind: PhaseKind, work: Callable[[], Awaitable[T]]) -> T:
        limit_s = self._server.settings.limits.connect_timeout_ms / 1000
        began = self._clock.monotonic()
        failure: UpstreamFailed | None = None
        try:
            async with asyncio.timeout(limit_s):
                return await work()
        except (McpError, OSError, httpcore2.ConnectError, AddressBlocked) as error:
            failure = _failure(kind, error, limit_s)
            raise failure from None
        finally:
            self._phases.append(
                Phase(
                    kind,
                    round((self._clock.monotonic() - began) * 1000),
                    None if failure is None else failure.reason,
                    "" if failure is None else str(failure)[:1024],
                )
            )


async def _connect(
    addresses: tuple[str, ...], port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    failure = OSError("there is no address")
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
    raise failure


def _failure(kind: PhaseKind, error: Exception, limit_s: float) -> UpstreamFailed:
    """Say why a phase failed, in words of a person who configures the server."""
    match error:
        case UpstreamFailed():
            return error
        case NeedsConnect():
            return UpstreamFailed(Reason.NEEDS_CONNECT, str(error))
        case MissingUserValues():
            return UpstreamFailed(Reason.MISSING_USER_VALUES, str(error))
        case AddressBlocked():
            return UpstreamFailed(Reason.ADDRESS_BLOCKED, str(error))
        case TimeoutError():
            return UpstreamFailed(Reason.CONNECT_TIMEOUT, f"nothing happened for {limit_s:g} s")
        case ConnectionRefusedError():
            text = "nothing listens at this address and port"
            return UpstreamFailed(Reason.CONNECT_FAILED, text)
        case ssl.SSLCertVerificationError():
            text = f"the certificate is not accepted: {error.verify_message}"
            return UpstreamFailed(Reason.CONNECT_FAILED, text)
        case ssl.SSLError():
            text = f"the server does not speak TLS here ({error.reason})"
            return UpstreamFailed(Reason.CONNECT_FAILED, text)
        case _:
            return UpstreamFailed(Reason.CONNECT_FAILED, f"{kind.value} failed: {error}")
