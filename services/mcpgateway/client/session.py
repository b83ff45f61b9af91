"""One client of an MCP server: a session that a task owns, or a client for one operation.

The SDK's clients must be exited by the task that entered them, and a transport error may cancel
that task. So a session is entered and exited by one task of its own. Callers run their operation in
another task, which also watches for the end of the session and of the HTTP exchange, and are not
cancelled when either fails.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from mcp import Client

from mcpgateway.client.failures import failed_exchange, lost_session
from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import UpstreamFailed
from parley.clock import Clock
from parley.egress.transport import EXCHANGE, IDENTITY, Exchange, Identity
from parley.tasks import Overtaken, run_unless

T = TypeVar("T")
Work = Callable[[Client], Awaitable[T]]
Connecting = Callable[[], AbstractAsyncContextManager[Client]]


class TaskSession:
    """One session with a stateful server, owned by one task."""

    def __init__(
        self, connecting: Connecting, identity: Identity, limit_ms: int, now: float
    ) -> None:
        self._connecting = connecting
        self._identity = identity
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
        self._is_retired = False

    @property
    def is_over(self) -> bool:
        """Whether no new operation may use it."""
        return self._is_retired or self.stopping.is_set() or self.ended.is_set()

    async def run_client(self) -> None:
        """Enter the client, keep it until `stop` is called, and exit it, all in this task."""
        self._owner = asyncio.current_task()
        exchange = Exchange()
        EXCHANGE.set(exchange)
        IDENTITY.set(self._identity)
        failure = UpstreamFailed(
            Reason.CONNECT_TIMEOUT, f"the server did not connect within {self._limit_ms} ms"
        )
        # Not asyncio.timeout around entering: its scope would have to end before the client's.
        limit = asyncio.get_running_loop().call_later(self._limit_ms / 1000, self.stop)
        try:
            async with self._connecting() as client:
                limit.cancel()
                self._opened.set_result(client)
                await self.stopping.wait()
        except Exception as error:  # The SDK raises any error of its transport.
            failure = failed_exchange(error, exchange, is_connecting=True)
        finally:
            limit.cancel()
            self.stopping.set()
            self.ended.set()
            if not self._opened.done():
                self._opened.set_result(failure)

    def stop(self) -> None:
        """Signal the owner to exit the client; one that is still entering is cancelled."""
        self.stopping.set()
        if not self._opened.done() and self._owner is not None:
            self._owner.cancel()

    def retire(self) -> None:
        """Let no new operation use it, and stop it when those that run have ended."""
        self._is_retired = True
        if self.operations == 0:
            self.stop()

    async def opened(self) -> Client:
        """Return the client once it is connected.

        Raises:
            UpstreamFailed: It could not be connected, or not in time.
        """
        await asyncio.wait({self._opened})
        result = self._opened.result()
        if isinstance(result, UpstreamFailed):
            raise result
        return result

    async def run(self, work: Work[T], clock: Clock) -> T:
        """Run `work` with the session's client.

        Raises:
            UpstreamFailed: It failed, or the session ended meanwhile.
        """
        client = self._opened.result()
        assert isinstance(client, Client)
        self.operations += 1
        try:
            return await _watched(
                lambda: work(client), self.ended, self._identity, has_session=True
            )
        finally:
            self.operations -= 1
            self.used_at = clock.monotonic()
            if self._is_retired:
                self.retire()


async def short_lived(connecting: Connecting, identity: Identity, work: Work[T]) -> T:
    """Run `work` with a new client on behalf of an identity.

    Raises:
        UpstreamFailed: It failed.
    """

    async def connected() -> T:
        async with connecting() as client:
            return await work(client)

    return await _watched(connected, asyncio.Event(), identity, has_session=False)


async def _watched(
    work: Callable[[], Awaitable[T]],
    ended: asyncio.Event,
    identity: Identity,
    *,
    has_session: bool,
) -> T:
    """Run `work` in its own task until it, its session or its HTTP exchange ends."""
    exchange = Exchange()

    async def with_own_errors() -> T:
        EXCHANGE.set(exchange)
        IDENTITY.set(identity)
        try:
            return await work()
        except Exception as error:  # The SDK raises any error of its transport.
            raise failed_exchange(error, exchange, has_session=has_session) from None

    try:
        return await run_unless(with_own_errors(), ended.wait(), exchange.broken.wait())
    except Overtaken:
        if exchange.error is not None:
            error = failed_exchange(exchange.error, exchange, has_session=has_session)
            raise error from None
        raise lost_session(is_sent=exchange.is_sent) from None
