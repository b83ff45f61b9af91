"""Lending connections: how many, in which state they come back, and what is left of a given-up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from parley.postgres import Connection, DatabaseBusy, DatabaseUnavailable, Pool, PoolExhausted
from support.database.taken_pool import all_taken

PID = "SELECT pg_backend_pid()"


@asynccontextmanager
async def pooled(url: str, size_max: int = 2, patience_s: float = 5.0) -> AsyncIterator[Pool]:
    async def connect() -> Connection:
        return await asyncpg.connect(url)

    async with asyncio.timeout(30), Pool(connect, size_max=size_max, patience_s=patience_s) as pool:
        yield pool


async def test_statements_one_after_another_use_one_connection(empty_database: str) -> None:
    async with pooled(empty_database) as pool:
        seen = {await pool.fetchval(PID) for _ in range(5)}
        async with pool.acquire() as connection:
            seen.add(await connection.fetchval(PID))
        assert len(seen) == 1


async def test_no_more_connections_are_opened_than_allowed(empty_database: str) -> None:
    async with pooled(empty_database, size_max=3) as pool, asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(pool.fetchval(f"{PID}, pg_sleep(0.01)")) for _ in range(30)]
    assert len({task.result() for task in asked}) == 3


async def test_a_connection_that_the_server_closed_is_not_lent_again(empty_database: str) -> None:
    async with pooled(empty_database) as pool:
        before = await pool.fetchval(PID)
        async with pool.acquire() as connection, pool.acquire() as other:
            closed = asyncio.Event()
            first = connection if await connection.fetchval(PID) == before else other
            second = other if first is connection else connection
            first.add_termination_listener(lambda _: closed.set())
            await second.execute("SELECT pg_terminate_backend($1)", before)
            await closed.wait()
        assert before not in {await pool.fetchval(PID) for _ in range(3)}


async def test_an_error_of_a_statement_leaves_the_connection_usable(empty_database: str) -> None:
    async with pooled(empty_database) as pool:
        before = await pool.fetchval(PID)
        for ask in (pool.fetch, pool.fetchrow, pool.execute, pool.fetchval):
            with pytest.raises(asyncpg.DivisionByZeroError):
                await ask("SELECT 1 / 0")
        assert await pool.fetchval(PID) == before


async def test_an_open_transaction_is_not_handed_to_the_next(empty_database: str) -> None:
    async with pooled(empty_database, size_max=1) as pool:
        await pool.execute("CREATE TABLE things (id int)")
        async with pool.acquire() as connection:
            await connection.execute("BEGIN")
            await connection.execute("INSERT INTO things VALUES (1)")
        assert await pool.fetch("SELECT * FROM things") == []


async def test_a_statement_that_is_given_up_has_ended_when_its_caller_goes_on(
    empty_database: str,
) -> None:
    running = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND state = 'active' AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()"
    )
    async with pooled(empty_database) as pool:
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(pool.fetchval("SELECT pg_sleep(60)"))
            while await pool.fetchval(running) == 0:
                pass
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await pool.fetchval(running) == 0
        async with all_taken(pool):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await pool.fetchval("SELECT 1")
        assert await pool.fetchval("SELECT 1") == 1


async def test_a_connection_that_cannot_be_opened_takes_no_place(empty_database: str) -> None:
    answers = iter([True, False, False, True])

    async def connect() -> Connection:
        if not next(answers):
            raise ConnectionRefusedError
        return await asyncpg.connect(empty_database)

    async with (
        asyncio.timeout(30),
        Pool(connect, size_max=2, patience_s=5) as pool,
        pool.acquire(),
    ):
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable):
                await pool.fetchval("SELECT 1")
        assert await pool.fetchval("SELECT 1") == 1


async def test_a_statement_that_the_server_ended_is_raised_as_one_that_changed_nothing(
    empty_database: str,
) -> None:
    async with pooled(empty_database, size_max=1) as pool:
        await pool.execute("SET statement_timeout = 20")
        for ask in (pool.fetch, pool.fetchrow, pool.execute, pool.fetchval):
            with pytest.raises(DatabaseBusy):
                await ask("SELECT pg_sleep(60)")
        with pytest.raises(DatabaseBusy):
            async with pool.acquire() as connection, connection.transaction():
                await connection.execute("SELECT pg_sleep(60)")


async def test_an_error_of_the_caller_is_not_taken_for_one_of_the_database(
    empty_database: str,
) -> None:
    refused = ValueError("not of the database")
    async with pooled(empty_database) as pool:
        with pytest.raises(ValueError, match="not of the database") as raised:
            async with pool.acquire():
                raise refused
    assert raised.value is refused


async def test_who_waits_gets_the_next_free_connection_and_gives_up_in_time(
    empty_database: str,
) -> None:
    async with pooled(empty_database, size_max=1, patience_s=0.05) as pool:
        async with all_taken(pool):
            with pytest.raises(PoolExhausted):
                await pool.fetch("SELECT 1")
        begun = asyncio.Event()

        async def ask() -> object:
            begun.set()
            return await pool.fetchval("SELECT 7")

        async with asyncio.TaskGroup() as tasks:
            async with pool.acquire():
                waiting = tasks.create_task(ask())
                await begun.wait()
            assert await waiting == 7


async def test_a_closed_pool_lends_nothing_and_leaves_nothing_open(empty_database: str) -> None:
    async with pooled(empty_database) as pool, pool.acquire() as connection:
        lent = pool.acquire()
        late = await lent.__aenter__()
        await pool.__aexit__()
        with pytest.raises(asyncpg.InterfaceError, match="closed"):
            await pool.fetchval("SELECT 1")
        await lent.__aexit__(None, None, None)
        assert late.is_closed()
    assert connection.is_closed()
