"""What every bus promises, asked of the real one and of the fake."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import asyncpg
import pytest

from parley.bus import Bus, InMemoryBus, Notice, PostgresBus, Resync
from support.database.postgres import TestPostgres
from support.host.supervised import supervision

CUT_LISTENERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name LIKE '% listen' AND datname = current_database()
"""


@dataclass(frozen=True)
class Pair:
    """Two ends of one bus, as two processes have them, and a way to break it for a moment."""

    here: Bus
    there: Bus
    interrupt: Callable[[], Awaitable[object]]


@pytest.fixture(params=["memory", "postgres"])
async def pair(request: pytest.FixtureRequest, postgres: TestPostgres) -> AsyncIterator[Pair]:
    if request.param == "memory":
        memory = InMemoryBus()

        async def lose() -> None:
            memory.lose_connection()

        yield Pair(memory, memory, lose)
        return
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres.database())
        here, there = [
            await stack.enter_async_context(
                PostgresBus.open(url, application_name=name, supervision=supervision())
            )
            for name in ("here", "there")
        ]

        async def cut() -> None:
            connection = await asyncpg.connect(url)
            await connection.execute(CUT_LISTENERS)
            await connection.close()

        yield Pair(here, there, cut)


async def test_everybody_who_subscribed_hears_a_notice(pair: Pair) -> None:
    async with (
        asyncio.timeout(5),
        pair.there.subscribe("chat") as far,
        pair.here.subscribe("chat") as near,
        pair.here.subscribe("chat") as another,
    ):
        pair.here.publish(Notice("chat", "a", 1))
        for subscriber in (far, near, another):
            assert await anext(subscriber) == Notice("chat", "a", 1)


async def test_a_topic_is_heard_by_its_subscribers_only(pair: Pair) -> None:
    async with (
        asyncio.timeout(5),
        pair.there.subscribe("user") as users,
        pair.there.subscribe("chat") as chats,
    ):
        pair.here.publish(Notice("chat", "a", 1), Notice("user", "b", 2))
        assert await anext(users) == Notice("user", "b", 2)
        assert await anext(chats) == Notice("chat", "a", 1)


async def test_a_slow_subscriber_hears_the_newest_version(pair: Pair) -> None:
    async with (
        asyncio.timeout(5),
        pair.there.subscribe("chat") as slow,
        pair.there.subscribe("done") as done,
    ):
        pair.here.publish(*(Notice("chat", "a", version) for version in (1, 3, 2)))
        pair.here.publish(Notice("done", "", 0))
        await anext(done)
        assert await anext(slow) == Notice("chat", "a", 3)
        pair.here.publish(Notice("chat", "b", 1))
        assert await anext(slow) == Notice("chat", "b", 1)


async def test_thousands_of_notices_all_arrive(pair: Pair) -> None:
    sent = {Notice("chat", f"{number:036}", number) for number in range(3000)}
    async with asyncio.timeout(10), pair.there.subscribe("chat") as subscriber:
        pair.here.publish(*sent)
        assert {await anext(subscriber) for _ in sent} == sent


async def test_after_an_interruption_everybody_is_told_to_resync(pair: Pair) -> None:
    async with (
        asyncio.timeout(10),
        pair.there.subscribe("chat") as far,
        pair.here.subscribe("user") as near,
    ):
        await pair.interrupt()
        assert await anext(far) == Resync()
        assert await anext(near) == Resync()
        pair.here.publish(Notice("chat", "a", 1))
        assert await anext(far) == Notice("chat", "a", 1)


async def test_who_subscribes_again_is_told_to_read_again_first(pair: Pair) -> None:
    async with asyncio.timeout(5):
        async with pair.there.subscribe("chat"):
            pass
        async with pair.there.subscribe("chat") as fresh:
            pair.here.publish(Notice("chat", "a", 1))
            heard = (await anext(fresh), await anext(fresh))
    assert heard == (Resync(), Notice("chat", "a", 1))


async def test_publishing_nothing_or_to_nobody_is_fine(pair: Pair) -> None:
    pair.here.publish()
    pair.here.publish(Notice("nobody listens", "a", 1))
