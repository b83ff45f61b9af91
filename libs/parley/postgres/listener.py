"""LISTEN on a dedicated connection that detects by itself when it is dead.

A TCP connection whose peer vanished stays open and silent, so silence proves nothing. The listener
therefore sends itself a NOTIFY on a private channel every `ping_every_s`; if that does not come
back within `ping_timeout_s` the connection is dropped and a new one is opened. Notifications in
between are lost, which is why every connection begins with `Connected`: the consumer reads the
state again then.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from parley.clock import Clock, backoff_s
from parley.postgres.errors import DatabaseUnavailable
from parley.postgres.session import Session, typed_outages
from parley.tasks import is_set_within

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Connected:
    """All notifications from now on are delivered; earlier ones may have been lost."""


@dataclass(frozen=True, slots=True)
class Notified:
    """A NOTIFY with `payload` arrived on `channel`."""

    channel: str
    payload: str


ListenEvent = Connected | Notified


@dataclass(frozen=True, slots=True)
class ListenerTiming:
    """How often the listener tests its connection and how soon it replaces a dead one."""

    ping_every_s: float = 10.0
    ping_timeout_s: float = 5.0
    retry_first_s: float = 0.1
    retry_max_s: float = 5.0


class Listener:
    """Delivers the notifications of some channels while `run` runs."""

    def __init__(
        self,
        url: str,
        *,
        channels: Sequence[str],
        application_name: str,
        clock: Clock,
        timing: ListenerTiming | None = None,
        new_nonce: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._session = Session(url, application_name)
        self._channels = tuple(channels)
        self._clock = clock
        self._timing = timing or ListenerTiming()
        self._new_nonce = new_nonce

    async def run(self, receive: Callable[[ListenEvent], None]) -> None:
        """Listen until cancelled; `receive` is called for each event and must return at once.

        Raises:
            DatabaseMisconfigured: The URL, role, password or database is wrong.
        """
        failures, timing = 0, self._timing
        while True:
            try:
                async with self._listening(receive) as line:
                    failures = 0
                    receive(Connected())
                    reason = await self._until_lost(line)
            except DatabaseUnavailable as error:
                reason = error.reason
            failures += 1
            delay_s = backoff_s(failures, timing.retry_first_s, timing.retry_max_s)
            log.warning("listening again in %.1f s: %s", delay_s, reason)
            await self._clock.sleep(delay_s)

    @asynccontextmanager
    async def _listening(
        self, receive: Callable[[ListenEvent], None]
    ) -> "AsyncIterator[_ListeningConnection]":
        line = _ListeningConnection(await self._session.open(), f"ping_{self._new_nonce()}")

        def heard(connection: object, pid: int, channel: str, payload: object) -> None:
            receive(Notified(channel, str(payload)))

        try:
            with typed_outages():
                async with asyncio.timeout(self._timing.ping_timeout_s):
                    await line.prepare()
                    for channel in self._channels:
                        await line.connection.add_listener(channel, heard)
            yield line
        finally:
            # Not close(): on a half-open connection it would wait for a reply.
            line.connection.terminate()

    async def _until_lost(self, line: "_ListeningConnection") -> str:
        """Return why the connection can no longer be used."""
        while True:
            ping = line.ping(self._new_nonce())
            if not await self._ends_within(self._timing.ping_timeout_s, ping, line):
                return "a ping to ourselves did not come back"
            if await is_set_within(line.lost, self._timing.ping_every_s, self._clock):
                return "the connection was closed"

    async def _ends_within(
        self, limit_s: float, work: Coroutine[None, None, None], line: "_ListeningConnection"
    ) -> bool:
        """Return whether `work` finished in time; otherwise cancel it and drop the connection."""
        async with asyncio.TaskGroup() as tasks:
            doing = tasks.create_task(work)
            limit = tasks.create_task(self._clock.sleep(limit_s))
            await asyncio.wait((doing, limit), return_when=asyncio.FIRST_COMPLETED)
            has_ended = doing.done()
            limit.cancel()
            if not has_ended:
                # The connection is dropped first: cancelling a call on an open one sends a cancel
                # request.
                line.connection.terminate()
                doing.cancel()
        return has_ended


class _ListeningConnection:
    """One listening connection, and the pings that come back on it."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]", channel: str) -> None:
        self.connection = connection
        self.lost = asyncio.Event()
        self._channel = channel
        self._nonce = ""
        self._echoed = asyncio.Event()

    async def prepare(self) -> None:
        self.connection.add_termination_listener(self._lose)
        await self.connection.add_listener(self._channel, self._hear_ping)

    async def ping(self, nonce: str) -> None:
        """Return when the notification came back, or when the connection is lost."""
        self._nonce = nonce
        self._echoed.clear()
        try:
            with typed_outages():
                await self.connection.execute("SELECT pg_notify($1, $2)", self._channel, nonce)
        except DatabaseUnavailable:
            self._lose(self.connection)
        if not self.lost.is_set():
            await self._echoed.wait()

    def _lose(self, connection: object) -> None:
        self.lost.set()
        self._echoed.set()

    def _hear_ping(self, connection: object, pid: int, channel: str, payload: object) -> None:
        if payload == self._nonce:
            self._echoed.set()
