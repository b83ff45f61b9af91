import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import pytest

from parley.clock import FakeClock
from parley.postgres import (
    Connected,
    DatabaseMisconfigured,
    Listener,
    ListenEvent,
    Notified,
    compose_url,
)
from support.database.postgres import TestPostgres


@asynccontextmanager
async def listening(url: str, clock: FakeClock) -> AsyncIterator[asyncio.Queue[ListenEvent]]:
    events: asyncio.Queue[ListenEvent] = asyncio.Queue()
    listener = Listener(url, channels=["news"], application_name="listener", clock=clock)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(listener.run(events.put_nowait))
        yield events
        running.cancel()


async def notify(url: str, payload: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("SELECT pg_notify('news', $1)", payload)
    await connection.close()


async def test_notifications_arrive_after_the_word_that_listening_began(
    empty_database: str,
) -> None:
    async with listening(empty_database, FakeClock()) as events:
        assert await events.get() == Connected()
        await notify(empty_database, "one")
        await notify(empty_database, "two")
        assert await events.get() == Notified("news", "one")
        assert await events.get() == Notified("news", "two")


async def test_a_terminated_listener_connects_again_and_says_so(empty_database: str) -> None:
    clock = FakeClock()
    async with listening(empty_database, clock) as events:
        assert await events.get() == Connected()
        connection = await asyncpg.connect(empty_database)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'listener' AND datname = current_database()"
        )
        await connection.close()
        await sleeps(clock, 0.1)
        clock.advance(0.1)
        assert await events.get() == Connected()
        await notify(empty_database, "again")
        assert await events.get() == Notified("news", "again")


async def test_pings_go_on_while_the_connection_lives(empty_database: str) -> None:
    clock = FakeClock()
    async with listening(empty_database, clock) as events:
        assert await events.get() == Connected()
        for _ in range(3):
            await sleeps(clock, 10)
            clock.advance(10)
        await sleeps(clock, 10)
        assert events.empty()


async def test_a_half_open_connection_is_noticed_within_fifteen_seconds(
    postgres: TestPostgres, empty_database: str, tmp_path: Path
) -> None:
    clock = FakeClock()
    real = postgres.server.socket_directory / f".s.PGSQL.{postgres.server.port}"
    async with BlackHole(tmp_path / ".s.PGSQL.5432", real).open() as hole:
        through_the_hole = empty_database.partition("?")[0] + f"?host={tmp_path}&port=5432"
        async with listening(through_the_hole, clock) as events:
            assert await events.get() == Connected()
            await sleeps(clock, 10)
            hole.is_swallowing = True
            clock.advance(10)
            await sleeps(clock, 5)
            clock.advance(5)
            await sleeps(clock, 0.1)
            hole.is_swallowing = False
            clock.advance(0.1)
            assert await events.get() == Connected()
            await notify(empty_database, "heard")
            assert await events.get() == Notified("news", "heard")


async def test_an_absent_server_is_asked_again_with_growing_pauses(tmp_path: Path) -> None:
    clock = FakeClock()
    url = compose_url(role="r", password="p", database="d", host=tmp_path)
    async with listening(url, clock) as events:
        for expected in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5):
            await sleeps(clock, expected)
            clock.advance(expected)
        assert events.empty()


async def test_a_wrong_password_ends_listening(postgres: TestPostgres) -> None:
    url = postgres.server.url(role="postgres", password="wrong", database="postgres")
    listener = Listener(url, channels=["news"], application_name="l", clock=FakeClock())
    with pytest.raises(DatabaseMisconfigured):
        await listener.run(lambda event: None)


async def sleeps(clock: FakeClock, delay_s: float) -> None:
    """Wait until somebody sleeps for exactly this long; shorter limits may come and go."""
    while await clock.until_sleeping() != pytest.approx(delay_s):
        await let_others_run()


async def let_others_run() -> None:
    await asyncio.to_thread(lambda: None)


class BlackHole:
    """A socket in front of the server that can swallow everything without closing."""

    def __init__(self, path: Path, target: Path) -> None:
        self.is_swallowing = False
        self._path = path
        self._target = target

    @asynccontextmanager
    async def open(self) -> "AsyncIterator[BlackHole]":
        server = await asyncio.start_unix_server(self._serve, self._path)
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._target)
        is_swallowed: Callable[[], bool] = lambda: self.is_swallowing  # noqa: E731
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_pump(reader, far_writer, is_swallowed))
            tasks.create_task(_pump(far_reader, writer, is_swallowed))


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_swallowed: Callable[[], bool]
) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            if not is_swallowed():
                writer.write(data)
                await writer.drain()
    writer.close()
