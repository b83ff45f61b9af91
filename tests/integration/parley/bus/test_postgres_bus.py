import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from parley.bus import BusTiming, Notice, PostgresBus, Resync
from parley.clock import FakeClock
from parley.postgres import DatabaseMisconfigured, DatabaseUnavailable
from support.database.postgres import TestPostgres
from support.host.supervised import supervision

A, B = Notice("chat", "a", 1), Notice("chat", "b", 1)
FLUSH_PAUSE_S = BusTiming().flush_pause_s


@asynccontextmanager
async def raw_listener(url: str) -> AsyncIterator[asyncio.Queue[str]]:
    payloads: asyncio.Queue[str] = asyncio.Queue()
    connection = await asyncpg.connect(url)
    await connection.add_listener(
        "parley_bus", lambda connection, pid, channel, payload: payloads.put_nowait(str(payload))
    )
    yield payloads
    await connection.close()


async def run(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


async def test_a_notice_leaves_at_once_and_what_follows_soon_leaves_together(
    empty_database: str,
) -> None:
    clock = FakeClock()
    async with (
        asyncio.timeout(5),
        raw_listener(empty_database) as payloads,
        PostgresBus.open(
            empty_database, application_name="t", supervision=supervision(clock)
        ) as bus,
    ):
        await clock.until_sleeping()
        bus.publish(A)
        assert await payloads.get() == '[["chat","a",1]]'
        while await clock.until_sleeping() > FLUSH_PAUSE_S:
            await asyncio.to_thread(lambda: None)
        bus.publish(B)
        bus.publish(Notice("chat", "a", 2))
        await asyncio.to_thread(lambda: None)
        assert payloads.empty()
        clock.advance(FLUSH_PAUSE_S)
        assert await payloads.get() == '[["chat","b",1],["chat","a",2]]'


async def test_what_was_published_last_is_sent_before_the_end(empty_database: str) -> None:
    async with asyncio.timeout(5), raw_listener(empty_database) as payloads:
        async with PostgresBus.open(
            empty_database, application_name="t", supervision=supervision()
        ) as bus:
            bus.publish(A)
        assert await payloads.get() == '[["chat","a",1]]'


async def test_notices_outlive_the_connection_they_were_meant_for(empty_database: str) -> None:
    async with (
        asyncio.timeout(10),
        raw_listener(empty_database) as payloads,
        PostgresBus.open(empty_database, application_name="t", supervision=supervision()) as bus,
    ):
        await run(
            empty_database,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 't notify' AND datname = current_database()",
        )
        bus.publish(A)
        assert await payloads.get() == '[["chat","a",1]]'


async def test_a_sender_that_lost_too_much_tells_everybody_to_resync(empty_database: str) -> None:
    async with (
        asyncio.timeout(30),
        PostgresBus.open(
            empty_database, application_name="here", supervision=supervision()
        ) as here,
        PostgresBus.open(
            empty_database, application_name="there", supervision=supervision()
        ) as there,
        there.subscribe("user") as users,
    ):
        here.publish(*(Notice("chat", str(number), 1) for number in range(20_001)))
        assert await anext(users) == Resync()


async def test_a_payload_that_nobody_understands_is_a_resync(empty_database: str) -> None:
    async with (
        asyncio.timeout(5),
        PostgresBus.open(empty_database, application_name="t", supervision=supervision()) as bus,
        bus.subscribe("chat") as chats,
    ):
        await run(empty_database, "SELECT pg_notify('parley_bus', 'from the future')")
        assert await anext(chats) == Resync()


async def test_the_callers_own_error_is_not_wrapped(empty_database: str) -> None:
    async def fail() -> None:
        async with PostgresBus.open(
            empty_database, application_name="t", supervision=supervision()
        ):
            raise KeyError("mine")

    with pytest.raises(KeyError):
        await fail()


async def test_an_absent_server_is_reported_at_the_start() -> None:
    with pytest.raises(DatabaseUnavailable):
        async with PostgresBus.open(
            "postgresql://r:p@127.0.0.1:1/d",
            application_name="t",
            supervision=supervision(),
            timing=BusTiming(connect_within_s=0),
        ):
            pass


async def test_a_wrong_password_is_reported_at_the_start(postgres: TestPostgres) -> None:
    url = postgres.server.url(role="postgres", password="wrong", database="postgres")
    with pytest.raises(DatabaseMisconfigured):
        async with PostgresBus.open(url, application_name="t", supervision=supervision()):
            pass
