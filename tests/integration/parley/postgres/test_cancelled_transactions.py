"""Work that is cancelled at any of its awaits leaves nothing to the next user of its connection."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text

from parley.postgres import Connection, Database, Pool
from support.host.cancelled_at import cancelled_at_every_await

SIZE = 2
INSERT = "INSERT INTO things VALUES ($1)"
OPEN = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"


@asynccontextmanager
async def pooled(url: str) -> AsyncIterator[Pool]:
    async def connect() -> Connection:
        return await asyncpg.connect(url)

    async with asyncio.timeout(120), Pool(connect, size_max=SIZE, patience_s=5.0) as pool:
        await pool.execute("CREATE TABLE IF NOT EXISTS things (id int)")
        yield pool


async def require_clean(pool: Pool) -> None:
    """Use every connection of a pool as the next callers would."""
    async with AsyncExitStack() as stack:
        for _ in range(SIZE):
            connection = await stack.enter_async_context(pool.acquire())
            assert not connection.is_in_transaction()
            async with connection.transaction():
                await connection.execute("SET LOCAL lock_timeout = 7000")
                async with connection.transaction():
                    assert await connection.fetchval("SELECT count(*) % 2 FROM things") == 0
            assert not connection.is_in_transaction()
            assert await connection.fetchval("SHOW lock_timeout") == "0"


async def one_transaction(pool: Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(INSERT, 1)
        await connection.execute(INSERT, 2)


async def a_transaction_inside_of_another(pool: Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(INSERT, 1)
        async with connection.transaction():
            await connection.execute(INSERT, 2)


async def a_transaction_that_rolls_back(pool: Pool) -> None:
    try:
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute(INSERT, 1)
            raise KeyError
    except KeyError:
        return


async def two_transactions_of_one_connection(pool: Pool) -> None:
    async with pool.acquire() as connection:
        for _ in range(2):
            async with connection.transaction():
                await connection.execute(INSERT, 1)
                await connection.execute(INSERT, 2)


async def a_transaction_by_hand(pool: Pool) -> None:
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(INSERT, 1)
        await connection.execute(INSERT, 2)
        await transaction.commit()


async def single_statements(pool: Pool) -> None:
    await pool.fetchval("SELECT 1")
    await pool.execute("INSERT INTO things VALUES (1), (2)")


async def two_connections(pool: Pool) -> None:
    async with pool.acquire() as one, pool.acquire() as other, one.transaction():
        await one.execute(INSERT, 1)
        await other.fetchval("SELECT 1")
        await one.execute(INSERT, 2)


async def a_statement_whose_cancellation_is_caught(pool: Pool) -> None:
    async with pool.acquire() as connection:
        try:
            async with asyncio.timeout(0), connection.transaction():
                await connection.execute("SELECT pg_sleep(0.01)")
        except TimeoutError:
            return


WORKS: tuple[Callable[[Pool], Coroutine[Any, Any, None]], ...] = (
    one_transaction,
    a_transaction_inside_of_another,
    a_transaction_that_rolls_back,
    two_transactions_of_one_connection,
    a_transaction_by_hand,
    single_statements,
    two_connections,
    a_statement_whose_cancellation_is_caught,
)


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
async def test_the_next_user_of_the_pool_gets_a_clean_connection(
    empty_database: str, work: Callable[[Pool], Coroutine[Any, Any, None]]
) -> None:
    async with pooled(empty_database) as pool:
        async for number, moment in cancelled_at_every_await(lambda: work(pool)):
            try:
                await require_clean(pool)
            except Exception as error:
                error.add_note(f"after it was cancelled at await {number}, {moment.name}")
                raise
        while await pool.fetchval(OPEN) > SIZE:
            pass  # Those that were discarded are on their way out.


async def test_the_next_user_of_the_engine_gets_a_clean_connection(empty_database: str) -> None:
    async with (
        asyncio.timeout(120),
        Database.open(empty_database, application_name="t", connections_max=4) as database,
    ):
        await database.pool.execute("CREATE TABLE things (id int)")

        async def work() -> None:
            async with database.transaction() as connection:
                await connection.execute(text("INSERT INTO things VALUES (1)"))
                async with connection.begin_nested():
                    await connection.execute(text("INSERT INTO things VALUES (2)"))

        async for _ in cancelled_at_every_await(work):
            # The engine has a single connection here, so this is the one that was in use.
            async with database.transaction() as connection:
                count = await connection.scalar(text("SELECT count(*) % 2 FROM things"))
                async with connection.begin_nested():
                    await connection.execute(text("SELECT 1"))
            assert count == 0


async def test_a_connection_is_discarded_whose_driver_disagrees_with_the_server(
    empty_database: str,
) -> None:
    async with pooled(empty_database) as pool:
        async with pool.acquire() as connection:
            poisoned = await connection.fetchval("SELECT pg_backend_pid()")
            await connection.transaction().start()
            # The server is outside of a transaction again; the driver does not know.
            await connection.execute("ROLLBACK")
        await require_clean(pool)
        assert await pool.fetchval("SELECT pg_backend_pid()") != poisoned
