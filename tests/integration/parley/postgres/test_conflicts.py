"""Two real transactions that wait for each other: the one that the server ends is repeated."""

import asyncio

from parley.postgres import ConflictRetries, Database, Pool
from support.database.conflicts import RETRIES, never_the_victim, until_waiting

TABLE = "CREATE TABLE counters (id integer PRIMARY KEY, count integer NOT NULL)"
ROWS = "INSERT INTO counters VALUES (1, 0), (2, 0)"
COUNT = "UPDATE counters SET count = count + 1 WHERE id = $1"
COUNTS = "SELECT id, count FROM counters ORDER BY id"
READ = "SELECT count FROM counters WHERE id = 1"


async def test_both_of_two_transactions_that_deadlock_are_committed(empty_database: str) -> None:
    async with Database.open(empty_database, application_name="test", connections_max=4) as opened:
        pool, attempts = opened.pool, 0
        await pool.execute(TABLE)
        await pool.execute(ROWS)
        is_crossed = asyncio.Event()

        async def counted() -> None:
            nonlocal attempts
            attempts += 1
            async with pool.acquire() as connection, connection.transaction():
                await connection.execute(COUNT, 1)
                await is_crossed.wait()
                await connection.execute(COUNT, 2)

        async with asyncio.timeout(20), asyncio.TaskGroup() as group, pool.acquire() as other:
            async with never_the_victim(other):
                await other.execute(COUNT, 2)
                run = group.create_task(RETRIES.run(counted))
                await until_locked(pool)
                crossing = group.create_task(other.execute(COUNT, 1))
                await until_waiting(pool)
                is_crossed.set()  # Now each waits for the other; the last to wait is ended.
                await crossing
            await run
        assert attempts == 2
        assert [tuple(row) for row in await pool.fetch(COUNTS)] == [(1, 2), (2, 2)]


async def test_a_transaction_that_cannot_be_serialised_is_repeated(empty_database: str) -> None:
    async with Database.open(empty_database, application_name="test", connections_max=4) as opened:
        pool, seen = opened.pool, list[int]()
        await pool.execute(TABLE)
        await pool.execute(ROWS)

        async def counted() -> None:
            async with (
                pool.acquire() as connection,
                connection.transaction(isolation="repeatable_read"),
            ):
                seen.append(await connection.fetchval(READ))
                if len(seen) == 1:
                    await pool.execute(COUNT, 1)
                await connection.execute(COUNT, 1)

        async with asyncio.timeout(20):
            await ConflictRetries(RETRIES.clock, lambda: 1.0).run(counted)
        assert seen == [0, 1]
        assert await pool.fetchval(READ) == 2


async def until_locked(pool: Pool) -> None:
    """Wait until another session has changed the first counter."""
    locked = "SELECT 1 FROM counters WHERE id = 1 FOR UPDATE SKIP LOCKED"
    while await pool.fetchval(locked) is not None:
        await pool.execute("SELECT pg_sleep(0.005)")
