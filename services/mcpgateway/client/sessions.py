"""Connections to MCP servers through the SDK: endpoints, sessions, and their expiry.

A server of the current protocol is stateless: each operation creates a short-lived client over the
endpoint's pooled connections. A server of an older protocol has sessions: a session belongs to one
user (and, if the server keeps state per chat, to one chat).
"""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol, TypeVar

import httpx2
import msgspec
from mcp import Client
from mcp_types import Implementation, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcpgateway.client import operations as asking
from mcpgateway.client import references as asking_references
from mcpgateway.client.breaker import Breakers
from mcpgateway.client.call import OnProgress
from mcpgateway.client.content import Part, ToolAnswer
from mcpgateway.client.endpoint import Endpoint, close_endpoint
from mcpgateway.client.http_transport import http_transport
from mcpgateway.client.lenient_listing import lenient
from mcpgateway.client.questions import Ask, Elicitations
from mcpgateway.client.references import FilledPrompt, PromptEntry, ResourceEntry
from mcpgateway.client.session import Connecting, TaskSession, Work, short_lived
from mcpgateway.client.sse_transport import sse_transport
from mcpgateway.servers.domain import AuthKind, Catalogue, Limits, Reason, Target, Transport
from mcpgateway.servers.errors import CredentialsRefused, UpstreamFailed
from parley.clock import Clock
from parley.egress.policy import Policy
from parley.egress.transport import Identity, guarded_client
from parley.tasks import BackgroundTasks, Starter, Supervision

#: Of a message of a server, whatever its results are limited to: catalogues are no results.
LISTING_BYTES_MAX: Final = 8 * 1024 * 1024
#: Characters are escaped, images are base64, and structured results repeat the text.
ENCODING_FACTOR_MAX: Final = 4
ENVELOPE_BYTES_MAX: Final = 65536
SESSION_IDLE_S: Final = 300.0
SESSION_AGE_S: Final = 1800.0
ENDPOINT_IDLE_S: Final = 900.0
SESSIONS_MAX: Final = 500
SWEEP_S: Final = 30.0
#: For listings, probes and what listens to changes.
SPARE_CONNECTIONS: Final = 100
CLIENT: Final = Implementation(name="parley", version="0.1.0")

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Logins(Protocol):
    """The logins of users."""

    async def renewed(
        self, target: Target, refusal: CredentialsRefused, *, is_last: bool
    ) -> Target:
        """Return the target with a newer login than the one that its server refused.

        Args:
            target: The server with the refused login.
            refusal: What the server said.
            is_last: Whether the refused login was already a new one.

        Raises:
            UpstreamFailed: There is no other login; the user has to connect again.
        """
        ...


class Sessions:
    """MCP servers, reached through one guarded transport; implements `Upstream`.

    Args:
        policy: Where requests may go.
        clock: The clock of expiries.
        tasks: Owns the sessions.
        tools_changed: Is called with a server that announces other tools.
        logins: Renews logins that servers refuse; None if no user has any.
    """

    def __init__(
        self,
        policy: Policy,
        clock: Clock,
        tasks: Starter,
        tools_changed: Callable[[str], None] = lambda _: None,
        logins: Logins | None = None,
    ) -> None:
        self._policy = policy
        self._logins = logins
        self._clock = clock
        self._tasks = tasks
        self._tools_changed = tools_changed
        self._breakers = Breakers(clock)
        self._endpoints: dict[tuple[str, int], Endpoint] = {}
        self._retired: list[Endpoint] = []

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        policy: Policy,
        supervision: Supervision,
        tools_changed: Callable[[str], None] = lambda _: None,
        logins: Logins | None = None,
    ) -> "AsyncIterator[Sessions]":
        """Yield the sessions; at the end all of them are closed.

        Args:
            policy: The places that may be reached.
            supervision: Supervises their tasks.
            tools_changed: Is called with a server that announces other tools.
            logins: Renews logins that servers refuse; None if no user has any.
        """
        async with BackgroundTasks(supervision) as tasks:
            sessions = cls(policy, supervision.clock, tasks, tools_changed, logins)
            tasks.keep("sessions.expire", sessions._sweep_loop)
            try:
                yield sessions
            finally:
                await sessions.close()

    async def list_tools(self, target: Target) -> Catalogue:
        """Return the server's tools, within its connect timeout.

        Raises:
            UpstreamFailed: It does not respond, or its response is invalid.
        """

        async def list_and_follow(client: Client) -> Catalogue:
            catalogue = await asking.list_tools(client)
            tools = client.server_capabilities.tools
            if tools is not None and tools.list_changed:
                self._follow(target, client.protocol_version)
            return catalogue

        return await self._within(target, list_and_follow)

    async def call_tool(
        self, target: Target, tool: str, arguments_json: bytes, on_progress: OnProgress, ask: Ask
    ) -> ToolAnswer:
        """Call a tool once; a call that was certainly not sent is retried once.

        A call that asked goes on where it was, and is never made from its beginning again.

        Raises:
            UpstreamFailed: The tool did not respond; the error contains whether it may have run.
        """
        arguments = msgspec.json.decode(arguments_json or b"{}", type=dict[str, Any])
        call = asking.ToolCall(tool, arguments, on_progress, ask)
        try:
            return await self._broken_off(target, call.run)
        except UpstreamFailed as failure:
            if call.rounds == 0 or failure.may_have_executed:
                raise
            # What came before its question was done, whatever became of the rest.
            raise UpstreamFailed(
                Reason.SESSION_LOST, str(failure), may_have_executed=True
            ) from failure

    async def protocol_version(self, target: Target) -> str:
        """Connect, and return the protocol revision that was agreed on.

        Raises:
            UpstreamFailed: The server does not connect, or not in time.
        """

        async def read(client: Client) -> str:
            return client.protocol_version

        # Not through the breaker: somebody wants to know how the server is now.
        return await self._within(target, read, is_probe=True)

    async def list_resources(self, target: Target) -> tuple[ResourceEntry, ...]:
        """Return the resources of a server.

        Raises:
            UpstreamFailed: It does not respond.
        """
        return await self._within(target, asking_references.list_resources)

    async def read_resource(self, target: Target, uri: str) -> tuple[Part, ...]:
        """Return the contents of a resource.

        Raises:
            UpstreamFailed: The server does not respond, or has no such resource.
        """
        return await self._within(
            target, lambda client: asking_references.read_resource(client, uri)
        )

    async def list_prompts(self, target: Target) -> tuple[PromptEntry, ...]:
        """Return the prompts of a server.

        Raises:
            UpstreamFailed: It does not respond.
        """
        return await self._within(target, asking_references.list_prompts)

    async def get_prompt(
        self, target: Target, name: str, arguments: Mapping[str, str]
    ) -> FilledPrompt:
        """Return a prompt with its arguments filled in.

        Raises:
            UpstreamFailed: The server does not respond, or has no such prompt.
        """

        async def get(client: Client) -> FilledPrompt:
            return await asking_references.get_prompt(client, name, arguments)

        return await self._within(target, get)

    async def _within(self, target: Target, work: Work[T], *, is_probe: bool = False) -> T:
        """Run `work` within the connect timeout of the server."""
        limit_ms = target.server.settings.limits.connect_timeout_ms

        return await self._broken_off(target, work, limit_ms=limit_ms, is_probe=is_probe)

    async def _broken_off(
        self, target: Target, work: Work[T], *, limit_ms: int | None = None, is_probe: bool = False
    ) -> T:
        """Run `work` unless the breaker of the server is open, and tell the breaker how it went."""
        key = (target.server.id, target.server.version)
        if not is_probe:
            self._breakers.check(key)
        try:
            async with asyncio.timeout(None if limit_ms is None else limit_ms / 1000):
                done = await self._with_client(target, work)
        except UpstreamFailed as failure:
            self._breakers.failed(key, failure)
            raise
        except TimeoutError:
            message = f"the server did not answer within {limit_ms} ms"
            timed_out = UpstreamFailed(Reason.CONNECT_TIMEOUT, message)
            self._breakers.failed(key, timed_out)
            raise timed_out from None
        self._breakers.succeeded(key)
        return done

    def _follow(self, target: Target, protocol_version: str) -> None:
        """Listen to a server without sessions that announces changes; the others are heard."""
        endpoint = self._endpoint(target)
        if protocol_version in MODERN_PROTOCOL_VERSIONS and endpoint.listener is None:
            endpoint.listens_for = target.user_id
            # In a new context: it outlives the listing.
            endpoint.listener = self._tasks.create_task(
                self._listen(endpoint, target), context=contextvars.Context()
            )

    async def _listen(self, endpoint: Endpoint, target: Target) -> None:
        """Announce changes until the stream ends; the next listing begins another."""

        async def hear_all(client: Client) -> None:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._tools_changed(target.server.id)

        try:
            await short_lived(self._connecting(endpoint, target), _identity(target), hear_all)
        except UpstreamFailed as failure:
            logger.info("changes of %s are not heard: %s", target.server.settings.slug, failure)
        finally:
            endpoint.listener = None

    async def retire(self, server_id: str, version: int) -> None:
        """Close the sessions of a server that were opened for versions before this one."""
        old = [key for key in self._endpoints if key[0] == server_id and key[1] < version]
        for key in old:
            endpoint = self._endpoints.pop(key)
            if endpoint.operations == 0:
                await close_endpoint(endpoint)
            else:
                # Its calls end on their own; the sweep closes it afterwards.
                self._retired.append(endpoint)

    def forget_user(self, user_id: str, server_id: str | None = None) -> None:
        """Stop the sessions of a user, and what listens with their credentials.

        Args:
            user_id: The user.
            server_id: The server at which they gave up their login; None if they are gone.
        """
        for endpoint in (*self._endpoints.values(), *self._retired):
            if server_id not in (None, endpoint.server_id):
                continue
            for (_, _, owner, _, _), session in endpoint.all_sessions:
                if owner == user_id:
                    session.stop()
            if endpoint.listener is not None and endpoint.listens_for == user_id:
                endpoint.listener.cancel()

    async def close(self) -> None:
        """Close all sessions and connections."""
        endpoints, self._endpoints = self._endpoints, {}
        for endpoint in (*endpoints.values(), *self._retired):
            await close_endpoint(endpoint)

    async def _with_client(self, target: Target, work: Work[T]) -> T:
        """Run `work` with a client, and retry once with a new login if the old one is refused."""
        logins = self._logins
        if logins is None or target.server.settings.auth_kind is not AuthKind.OAUTH2:
            return await self._with_endpoint(target, work)
        try:
            return await self._with_endpoint(target, work)
        except CredentialsRefused as refusal:
            target = await logins.renewed(target, refusal, is_last=False)
        try:
            return await self._with_endpoint(target, work)
        except CredentialsRefused as refusal:
            await logins.renewed(target, refusal, is_last=True)
            raise

    async def _with_endpoint(self, target: Target, work: Work[T]) -> T:
        """Run `work` with a client, and retry once if the server certainly did not receive it."""
        endpoint = self._endpoint(target)
        endpoint.operations += 1
        try:
            for is_last in (False, True):
                session = None
                try:
                    if endpoint.mode not in MODERN_PROTOCOL_VERSIONS:
                        session = await self._session(endpoint, target)
                    if session is None:
                        connecting = self._connecting(endpoint, target)
                        return await short_lived(connecting, _identity(target), work)
                    return await session.run(work, self._clock)
                except UpstreamFailed as error:
                    if not error.is_of_request:
                        endpoint.reset_protocol()
                        if session is not None:
                            endpoint.retire(target.session_key, session)
                    if is_last or not _is_repeatable(error):
                        raise
            raise AssertionError("the last attempt returns or raises")
        finally:
            endpoint.operations -= 1
            endpoint.used_at = self._clock.monotonic()

    async def _session(self, endpoint: Endpoint, target: Target) -> TaskSession | None:
        """Return the user's session, or None if the server has no sessions."""
        session = endpoint.sessions.get(target.session_key)
        if session is None or session.is_over:
            self._evict()
            limit_ms = target.server.settings.limits.connect_timeout_ms
            connecting = self._connecting(endpoint, target)
            now = self._clock.monotonic()
            session = TaskSession(connecting, _identity(target), limit_ms, now)
            endpoint.sessions[target.session_key] = session
            # In a new context: the session outlives the call that opens it.
            self._tasks.create_task(session.run_client(), context=contextvars.Context())
        client = await session.opened()
        if endpoint.record_protocol(client):
            return session
        session.stop()
        endpoint.sessions.pop(target.session_key, None)
        return None

    def _endpoint(self, target: Target) -> Endpoint:
        key = (target.server.id, target.server.version)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            endpoint = Endpoint(target.server.id, self._http(target), self._clock.monotonic())
            self._endpoints[key] = endpoint
        return endpoint

    def _http(self, target: Target) -> httpx2.AsyncClient:
        limits = target.server.settings.limits
        return guarded_client(
            self._policy,
            response_bytes_max=_message_bytes_max(limits),
            # Read timeouts are handled by the caller of the operation.
            timeout=httpx2.Timeout(limits.connect_timeout_ms / 1000, read=None),
            # Each session keeps a stream open, and each call one more.
            connections_max=SESSIONS_MAX + limits.calls_max + SPARE_CONNECTIONS,
        )

    def _connecting(self, endpoint: Endpoint, target: Target) -> Connecting:
        settings = target.server.settings

        async def hear(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._tools_changed(target.server.id)

        def connect() -> AbstractAsyncContextManager[Client]:
            bytes_max = _message_bytes_max(settings.limits)
            if settings.transport is Transport.SSE:
                # This transport closes the client that is passed to it.
                transport: Any = sse_transport(settings.url, self._http(target), bytes_max)
            else:
                transport = lenient(http_transport(settings.url, endpoint.http, bytes_max))
            return Client(
                transport,
                message_handler=hear,
                elicitation_callback=Elicitations(),
                mode=endpoint.mode,
                prior_discover=endpoint.discovered,
                client_info=CLIENT,
                cache=None,
            )

        return connect

    def _evict(self) -> None:
        """Stop the least recently used idle session when there are too many."""
        sessions = [
            session
            for endpoint in self._endpoints.values()
            for session in endpoint.sessions.values()
        ]
        idle = [session for session in sessions if session.operations == 0]
        if len(sessions) >= SESSIONS_MAX and idle:
            min(idle, key=lambda session: session.used_at).stop()

    async def _sweep_loop(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_S)
            await self._sweep(self._clock.monotonic())

    async def _sweep(self, now: float) -> None:
        for endpoint in tuple(self._retired):
            if endpoint.operations == 0:
                self._retired.remove(endpoint)
                await close_endpoint(endpoint)
        for key, endpoint in tuple(self._endpoints.items()):
            endpoint.drop_ended()
            for owner, session in tuple(endpoint.sessions.items()):
                if session.operations == 0 and (
                    now - session.used_at > SESSION_IDLE_S
                    or now - session.opened_at > SESSION_AGE_S
                ):
                    session.stop()
                if session.ended.is_set():
                    del endpoint.sessions[owner]
            is_idle = not endpoint.sessions and not endpoint.operations
            if is_idle and now - endpoint.used_at > ENDPOINT_IDLE_S:
                del self._endpoints[key]
                await close_endpoint(endpoint)


def _identity(target: Target) -> Identity:
    try:
        return Identity.at(target.server.settings.url, target.headers)
    except httpx2.InvalidURL as error:
        raise UpstreamFailed(Reason.MISCONFIGURED, f"its URL cannot be used: {error}") from error


def _message_bytes_max(limits: Limits) -> int:
    """Return how large a message of a server may be, as a JSON body and as one event alike."""
    of_result = ENCODING_FACTOR_MAX * limits.result_bytes_max + ENVELOPE_BYTES_MAX
    return max(LISTING_BYTES_MAX, of_result)


def _is_repeatable(error: UpstreamFailed) -> bool:
    """Return whether the server certainly did not receive it and a new connection may help."""
    return error.reason is Reason.SESSION_LOST and not error.may_have_executed
