"""The bus over LISTEN and NOTIFY.

Publishing puts notices into the outbox and returns. One task empties it at once, but not again
within some milliseconds: every flush costs the server a commit and every process a wake-up. It has
a connection of its own, because a NOTIFY inside the writing transaction would cost that transaction
a third of its rate. All topics share one channel, many notices share a payload.
A flush whose answer is lost is sent again, since repeats are harmless.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from parley.bus.outbox import Outbox
from parley.bus.payload import PayloadUnreadable, decode
from parley.bus.port import BusItem, Notice, Resync
from parley.bus.subscription import Subscriptions
from parley.clock import Clock, backoff_s
from parley.postgres import (
    Connected,
    DatabaseUnavailable,
    Listener,
    ListenerTiming,
    ListenEvent,
    Notified,
    Session,
    SessionLimits,
    typed_outages,
)
from parley.tasks import BackgroundTasks, Supervision

CHANNEL = "parley_bus"
NOTIFY = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BusTiming:
    """How fast the bus sends, gives up and tries again."""

    flush_pause_s: float = 0.025
    send_timeout_s: float = 5.0
    retry_first_s: float = 0.1
    retry_max_s: float = 5.0
    connect_within_s: float = 30.0
    last_flush_s: float = 1.0


class PostgresBus:
    """Notifies every process connected to the same database, this one included."""

    def __init__(self, url: str, *, application_name: str, clock: Clock, timing: BusTiming) -> None:
        """Construct an unconnected bus; use `open` instead."""
        limits = SessionLimits(statement_timeout_s=timing.send_timeout_s)
        self._session = Session(url, f"{application_name} notify", limits)
        self._clock = clock
        self._timing = timing
        self._outbox = Outbox()
        self._subscriptions = Subscriptions()
        self._connected = asyncio.Event()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        *,
        application_name: str,
        supervision: Supervision,
        timing: BusTiming | None = None,
        listener_timing: ListenerTiming | None = None,
    ) -> "AsyncIterator[PostgresBus]":
        """Yield a connected bus; at the end, waiting notices are sent within `last_flush_s`.

        Args:
            url: The database.
            application_name: The prefix of the connections' `application_name`.
            supervision: Runs the tasks that listen and send; supplies the clock.
            timing: The pauses and timeouts of sending.
            listener_timing: The pings and reconnects of the listening connection.

        Raises:
            DatabaseUnavailable: The server did not answer in time.
            DatabaseMisconfigured: The URL, role, password or database is wrong.
        """
        timing, clock = timing or BusTiming(), supervision.clock
        bus = cls(url, application_name=application_name, clock=clock, timing=timing)
        listener = Listener(
            url,
            channels=[CHANNEL],
            application_name=f"{application_name} listen",
            clock=clock,
            timing=listener_timing,
        )
        # The first connection is opened here, so that a wrong address raises in the caller.
        bus._connection = await bus._session.open_patiently(
            clock=clock, patience_s=timing.connect_within_s
        )
        try:
            async with BackgroundTasks(supervision) as tasks:
                tasks.keep("bus.listen", lambda: listener.run(bus._hear))
                tasks.keep("bus.send", bus._send_forever)
                await bus._until_connected()
                yield bus
            await bus._send_last()
        finally:
            if bus._connection is not None:
                bus._connection.terminate()

    def publish(self, *notices: Notice) -> None:
        """Send the notices within a few milliseconds, or once the database is available again."""
        self._outbox.put(notices)

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncIterator[AsyncIterator[BusItem]]:
        """Yield all notices of `topic` while the context is open."""
        with self._subscriptions.open(topic) as subscription:
            yield subscription

    def _hear(self, event: ListenEvent) -> None:
        match event:
            case Connected():
                self._connected.set()
                self._subscriptions.resync()
            case Notified(payload=payload):
                self._deliver(payload)

    def _deliver(self, payload: str) -> None:
        try:
            items = decode(payload)
        except PayloadUnreadable as error:
            # A newer version may send a format that cannot be decoded here; a resync is always
            # correct.
            log.warning("%s", error)
            items = (Resync(),)
        if Resync() in items:
            self._subscriptions.resync()
        self._subscriptions.deliver(item for item in items if isinstance(item, Notice))

    async def _until_connected(self) -> None:
        try:
            async with asyncio.timeout(self._timing.connect_within_s):
                await self._connected.wait()
        except TimeoutError as error:
            raise DatabaseUnavailable("listening did not begin in time") from error

    async def _send_forever(self) -> None:
        failures, timing = 0, self._timing
        while True:
            await self._outbox.until_something()
            try:
                await self._send()
                failures = 0
                await self._clock.sleep(timing.flush_pause_s)
            except (DatabaseUnavailable, asyncpg.PostgresError) as error:
                failures += 1
                delay_s = backoff_s(failures, timing.retry_first_s, timing.retry_max_s)
                log.warning("%d notices wait %.1f s: %s", len(self._outbox), delay_s, error)
                await self._clock.sleep(delay_s)

    async def _send(self) -> None:
        batch = self._outbox.take()
        try:
            if self._connection is None:
                self._connection = await self._session.open()
            with typed_outages():
                async with asyncio.timeout(self._timing.send_timeout_s):
                    await self._connection.execute(NOTIFY, CHANNEL, batch.payloads())
        except BaseException:
            self._outbox.put_back(batch)
            if self._connection is not None:
                self._connection.terminate()
                self._connection = None
            raise

    async def _send_last(self) -> None:
        if not self._outbox:
            return
        try:
            async with asyncio.timeout(self._timing.last_flush_s):
                await self._send()
        except (DatabaseUnavailable, asyncpg.PostgresError, TimeoutError) as error:
            log.warning("%d notices were not sent at the end: %s", len(self._outbox), error)
