"""Connections to MCP servers through the SDK; the only module that imports it.

A server of today's protocol keeps no sessions: each operation makes a short-lived client over the
endpoint's pooled connections. An older one does: a session belongs to one user (and, if the server
keeps state per chat, to one chat) and is entered and left by one task of its own, because the SDK's
clients must be left by the task that entered them, and a transport error may cancel that task.
Callers run their operation in another task, watch for the end of the session and of the HTTP
exchange beside it, and are never touched by what happens to either.
"""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import httpx2
import msgspec
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    DiscoverResult,
    Implementation,
)
from mcp_types import Tool as ProtocolTool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcpgateway.call import Progress
from mcpgateway.content import TextPart, ToolAnswer
from mcpgateway.domain import Catalogue, Reason, Target, Transport
from mcpgateway.egress import EXCHANGE, Exchange, Policy, guarded_client
from mcpgateway.errors import UpstreamFailed
from mcpgateway.failures import failed_exchange, is_refusal, lost_session
from mcpgateway.translation import answer_of, clean_text, cut_text, usable_tools
from mcpgateway.upstream import OnProgress
from parley.clock import Clock

PAGES_MAX: Final = 100
TOOLS_MAX: Final = 2000
LISTING_BYTES_MAX: Final = 8 * 1024 * 1024
INSTRUCTIONS_BYTES_MAX: Final = 2048
SESSION_IDLE_S: Final = 300.0
SESSION_AGE_S: Final = 1800.0
ENDPOINT_IDLE_S: Final = 900.0
SESSIONS_MAX: Final = 500
SWEEP_S: Final = 30.0
CLIENT: Final = Implementation(name="parley", version="0.1.0")
# Codes that say something about the connection, not about the call.
OF_THE_CONNECTION: Final = (CONNECTION_CLOSED, HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION)

T = TypeVar("T")
Work = Callable[[Client], Awaitable[T]]
Connecting = Callable[[], AbstractAsyncContextManager[Client]]


@dataclass(slots=True)
class _Endpoint:
    """One server as configured: its connections, what protocol it speaks, its sessions."""

    http: httpx2.AsyncClient
    used_at: float
    mode: str = "auto"
    discovered: DiscoverResult | None = None
    operations: int = 0
    sessions: dict[tuple[str, int, str, str], "_Session"] = field(default_factory=dict)

    def learn(self, client: Client) -> bool:
        """Note which protocol the server speaks; return whether it keeps sessions."""
        discovered = client.session.discover_result
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS and discovered is not None:
            self.mode, self.discovered = client.protocol_version, discovered
            return False
        self.mode, self.discovered = "legacy", None
        return True

    def forget(self, session: "_Session | None") -> None:
        """Take nothing about the server for granted any more, and give the session up."""
        self.mode, self.discovered = "auto", None
        if session is not None:
            session.stop()


class Sessions:
    """MCP servers, reached through one guarded transport; an `Upstream`."""

    def __init__(self, policy: Policy, clock: Clock, tasks: asyncio.TaskGroup) -> None:
        self._policy = policy
        self._clock = clock
        self._tasks = tasks
        self._endpoints: dict[tuple[str, int], _Endpoint] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, policy: Policy, clock: Clock) -> "AsyncIterator[Sessions]":
        """Give the sessions; at the end all of them are closed."""
        async with asyncio.TaskGroup() as tasks:
            sessions = cls(policy, clock, tasks)
            sweeping = tasks.create_task(sessions._sweep_for_ever())
            try:
                yield sessions
            finally:
                sweeping.cancel()
                await sessions.close()

    async def list_tools(self, target: Target) -> Catalogue:
        """Return what the server offers, within its connect timeout.

        Raises:
            UpstreamFailed: It does not answer, or not as it should.
        """
        limit_ms = target.server.settings.limits.connect_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await self._use(target, _listing)
        except TimeoutError:
            raise UpstreamFailed(
                Reason.CONNECT_TIMEOUT, f"the server did not list its tools within {limit_ms} ms"
            ) from None

    async def call_tool(
        self, target: Target, tool: str, arguments_json: bytes, on_progress: OnProgress
    ) -> ToolAnswer:
        """Call a tool once; a call that provably never left is sent once more.

        Raises:
            UpstreamFailed: The tool did not answer; it says whether it may have run.
        """
        arguments = msgspec.json.decode(arguments_json or b"{}", type=dict[str, Any])

        async def call(client: Client) -> ToolAnswer:
            return await _called(client, tool, arguments, on_progress)

        return await self._use(target, call)

    async def close(self) -> None:
        """Give every session and connection up."""
        endpoints, self._endpoints = self._endpoints, {}
        for endpoint in endpoints.values():
            await _close(endpoint)

    async def _use(self, target: Target, work: Work[T]) -> T:
        """Run `work` with a client, once more if the server provably heard nothing of it."""
        endpoint = self._endpoint(target)
        endpoint.operations += 1
        try:
            for is_last in (False, True):
                session = None
                try:
                    if endpoint.mode not in MODERN_PROTOCOL_VERSIONS:
                        session = await self._session(endpoint, target)
                    if session is None:
                        return await _one_off(self._connecting(endpoint, target), work)
                    return await session.run(work, self._clock)
                except UpstreamFailed as error:
                    is_harmless = (
                        error.reason is Reason.SESSION_LOST and not error.may_have_executed
                    )
                    endpoint.forget(session)
                    if is_last or not is_harmless:
                        raise
            raise AssertionError("the last attempt returns or raises")
        finally:
            endpoint.operations -= 1
            endpoint.used_at = self._clock.monotonic()

    async def _session(self, endpoint: _Endpoint, target: Target) -> "_Session | None":
        """Return the user's session, or None when the server turns out to keep none."""
        session = endpoint.sessions.get(target.session)
        if session is None or session.is_over:
            self._make_room()
            limit_ms = target.server.settings.limits.connect_timeout_ms
            connecting = self._connecting(endpoint, target)
            session = _Session(connecting, limit_ms, self._clock.monotonic())
            endpoint.sessions[target.session] = session
            # Its own context: it outlives the call that happens to need it first.
            self._tasks.create_task(session.own(), context=contextvars.Context())
        client = await session.opened()
        if endpoint.learn(client):
            return session
        session.stop()
        endpoint.sessions.pop(target.session, None)
        return None

    def _endpoint(self, target: Target) -> _Endpoint:
        key = (target.server.id, target.server.version)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            endpoint = _Endpoint(self._http(target), self._clock.monotonic())
            self._endpoints[key] = endpoint
        return endpoint

    def _http(self, target: Target) -> httpx2.AsyncClient:
        limits = target.server.settings.limits
        return guarded_client(
            self._policy,
            headers=target.headers,
            # Pictures come as base64, and structured results repeat the text.
            response_bytes_max=max(LISTING_BYTES_MAX, 2 * limits.result_bytes_max + 65536),
            # Silence while reading is judged by whoever makes the call.
            timeout=httpx2.Timeout(limits.connect_timeout_ms / 1000, read=None),
        )

    def _connecting(self, endpoint: _Endpoint, target: Target) -> Connecting:
        settings = target.server.settings

        def fresh_http(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return self._http(target)

        def connect() -> AbstractAsyncContextManager[Client]:
            if settings.transport is Transport.SSE:
                # This transport closes the client it is given.
                transport: Any = sse_client(settings.url, httpx_client_factory=fresh_http)
            else:
                transport = streamable_http_client(
                    settings.url,
                    http_client=endpoint.http,
                    max_sse_event_size=2 * settings.limits.result_bytes_max + 65536,
                )
            return Client(
                transport,
                mode=endpoint.mode,
                prior_discover=endpoint.discovered,
                client_info=CLIENT,
                cache=None,
            )

        return connect

    def _make_room(self) -> None:
        """Stop the idle session that was used longest ago when there are too many."""
        sessions = [
            session
            for endpoint in self._endpoints.values()
            for session in endpoint.sessions.values()
        ]
        idle = [session for session in sessions if session.operations == 0]
        if len(sessions) >= SESSIONS_MAX and idle:
            min(idle, key=lambda session: session.used_at).stop()

    async def _sweep_for_ever(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_S)
            await self._sweep(self._clock.monotonic())

    async def _sweep(self, now: float) -> None:
        for key, endpoint in tuple(self._endpoints.items()):
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
                await _close(endpoint)


class _Session:
    """One session with a server that keeps them, owned by one task."""

    def __init__(self, connecting: Connecting, limit_ms: int, now: float) -> None:
        self._connecting = connecting
        self._limit_ms = limit_ms
        self._opened: asyncio.Future[Client | UpstreamFailed] = (
            asyncio.get_running_loop().create_future()
        )
        self._owner: asyncio.Task[object] | None = None
        self.opened_at = now
        self.used_at = now
        self.operations = 0
        self.stopping = asyncio.Event()
        self.ended = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether no new operation may use it."""
        return self.stopping.is_set() or self.ended.is_set()

    async def own(self) -> None:
        """Enter the client, keep it until told to stop, and leave it, all in this task."""
        self._owner = asyncio.current_task()
        exchange = Exchange()
        EXCHANGE.set(exchange)
        failure = UpstreamFailed(
            Reason.CONNECT_TIMEOUT, f"the server did not connect within {self._limit_ms} ms"
        )
        # Not a timeout around entering: those scopes would have to be left before the client's.
        limit = asyncio.get_running_loop().call_later(self._limit_ms / 1000, self.stop)
        try:
            async with self._connecting() as client:
                limit.cancel()
                self._opened.set_result(client)
                await self.stopping.wait()
        except Exception as error:  # The SDK raises whatever its transport met.
            failure = failed_exchange(error, exchange, is_connecting=True)
        finally:
            limit.cancel()
            self.stopping.set()
            self.ended.set()
            if not self._opened.done():
                self._opened.set_result(failure)

    def stop(self) -> None:
        """Ask the owner to leave the client; one that is still entering is cancelled."""
        self.stopping.set()
        if not self._opened.done() and self._owner is not None:
            self._owner.cancel()

    async def opened(self) -> Client:
        """Return the client once it is connected.

        Raises:
            UpstreamFailed: It could not be, or not in time.
        """
        await asyncio.wait({self._opened})
        result = self._opened.result()
        if isinstance(result, UpstreamFailed):
            raise result
        return result

    async def run(self, work: Work[T], clock: Clock) -> T:
        """Run `work` with the session's client.

        Raises:
            UpstreamFailed: It failed, or the session ended under it.
        """
        client = self._opened.result()
        assert isinstance(client, Client)
        self.operations += 1
        try:
            return await _watched(lambda: work(client), self.ended, has_session=True)
        finally:
            self.operations -= 1
            self.used_at = clock.monotonic()


def _is_repeatable(error: UpstreamFailed) -> bool:
    """Tell whether the server provably heard nothing, and a new connection may help."""
    return error.reason is Reason.SESSION_LOST and not error.may_have_executed


async def _one_off(connecting: Connecting, work: Work[T]) -> T:
    """Run `work` with a client of its own.

    Raises:
        UpstreamFailed: It failed.
    """

    async def connected() -> T:
        async with connecting() as client:
            return await work(client)

    return await _watched(connected, asyncio.Event(), has_session=False)


async def _watched(
    work: Callable[[], Awaitable[T]], ended: asyncio.Event, *, has_session: bool
) -> T:
    """Run `work` in a task of its own until it, its session or its HTTP exchange ends."""
    exchange = Exchange()

    async def contained() -> T | UpstreamFailed:
        EXCHANGE.set(exchange)
        try:
            return await work()
        except Exception as error:  # The SDK raises whatever its transport met.
            return failed_exchange(error, exchange, has_session=has_session)

    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(contained())
        watching: list[Coroutine[Any, Any, object]] = [ended.wait(), exchange.broken.wait()]
        watchers = {tasks.create_task(watch) for watch in watching}
        await asyncio.wait({working, *watchers}, return_when=asyncio.FIRST_COMPLETED)
        for task in (working, *watchers):
            task.cancel()
    if working.cancelled():
        if exchange.error is not None:
            raise failed_exchange(exchange.error, exchange, has_session=has_session)
        raise lost_session(is_sent=exchange.is_sent)
    result = working.result()
    if isinstance(result, UpstreamFailed):
        raise result
    return result


async def _listing(client: Client) -> Catalogue:
    """Return all pages of the server's tools, within bounds."""
    tools: list[ProtocolTool] = []
    cursor: str | None = None
    ttl_ms: int | None = None
    for _ in range(PAGES_MAX):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and client.server_capabilities.tools is None:
                break
            raise
        tools += page.tools
        ttl_ms = page.ttl_ms if ttl_ms is None else ttl_ms
        cursor = page.next_cursor
        if cursor is None or len(tools) >= TOOLS_MAX:
            break
    usable, dropped = usable_tools(tools[:TOOLS_MAX])
    return Catalogue(
        tools=usable,
        dropped=dropped + max(0, len(tools) - TOOLS_MAX),
        instructions=cut_text(client.instructions or "", INSTRUCTIONS_BYTES_MAX),
        ttl_s=None if ttl_ms is None else ttl_ms / 1000,
    )


async def _called(
    client: Client, tool: str, arguments: dict[str, Any], on_progress: OnProgress
) -> ToolAnswer:
    """Call the tool; what the server answers to it, an error too, is the answer."""
    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))

    async def note(progress: float, total: float | None, message: str | None) -> None:
        on_progress(Progress(progress, total, clean_text(message or "")[:1024]))

    async def send() -> ToolAnswer:
        # Not `call_tool`: it would validate a result after the fact and lose it.
        return answer_of(
            await client.session.send_request(request, CallToolResult, progress_callback=note)
        )

    try:
        try:
            return await send()
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
            # The server wants headers that only its listing tells of, and did not run the tool.
            await _listing(client)
            return await send()
    except MCPError as error:
        exchange = EXCHANGE.get()
        if error.code in OF_THE_CONNECTION or exchange is None or is_refusal(exchange):
            raise
        return ToolAnswer(is_error=True, parts=(TextPart(clean_text(error.message)),))


async def _close(endpoint: _Endpoint) -> None:
    """Ask the sessions to end and wait a little, then close the connections under them."""
    for session in endpoint.sessions.values():
        session.stop()
    ending = [session.ended.wait() for session in endpoint.sessions.values()]
    try:
        async with asyncio.timeout(2), asyncio.TaskGroup() as tasks:
            for each in ending:
                tasks.create_task(each)
    except TimeoutError:
        pass
    await endpoint.http.aclose()
