import asyncio
import os
import signal
from collections.abc import Coroutine
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from parley.clock import FakeClock
from parley.postgres import (
    Database,
    DatabaseMisconfigured,
    DatabaseUnavailable,
    Pool,
    PoolExhausted,
    compose_url,
    with_database,
)
from support.database.postgres import TestPostgres
from support.database.taken_pool import all_taken

KILL_ALL = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database()
"""

# What asyncpg asked the server about types on this connection.
QUESTIONS_ABOUT_TYPES = """
    SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'WITH RECURSIVE typeinfo_tree%'
"""


async def test_pool_and_engine_see_the_same_database(empty_database: str) -> None:
    async with Database.open(empty_database, application_name="t", connections_max=4) as database:
        async with database.transaction() as connection:
            await connection.execute(text("CREATE TABLE things (id int)"))
            await connection.execute(text("INSERT INTO things VALUES (7)"))
        assert await database.pool.fetchval("SELECT id FROM things") == 7


async def test_an_error_inside_a_transaction_rolls_it_back_and_stays_itself(
    empty_database: str,
) -> None:
    async with Database.open(empty_database, application_name="t", connections_max=4) as database:

        async def fail() -> None:
            async with database.transaction() as connection:
                await connection.execute(text("CREATE TABLE things (id int)"))
                raise FileNotFoundError

        with pytest.raises(FileNotFoundError):
            await fail()
        assert await database.pool.fetchval("SELECT to_regclass('things')") is None


async def test_every_session_carries_its_limits(empty_database: str) -> None:
    expected = {
        "application_name": "chatd",
        "idle_in_transaction_session_timeout": "5s",
        "jit": "off",
        "lock_timeout": "10s",
        "plan_cache_mode": "force_generic_plan",
        "statement_timeout": "30s",
    }
    query = "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY($1) ORDER BY 1"
    async with Database.open(
        empty_database, application_name="chatd", connections_max=2
    ) as database:
        rows = await database.pool.fetch(query, list(expected))
        assert {row[0]: row[1] for row in rows} == expected
        async with database.engine.connect() as connection:
            assert await connection.scalar(text("SHOW plan_cache_mode")) == "force_generic_plan"


async def test_losing_every_connection_fails_one_call_and_not_the_next(
    empty_database: str,
) -> None:
    async with Database.open(empty_database, application_name="t", connections_max=8) as database:
        async with database.pool.acquire() as connection, database.transaction():
            await connection.execute("SELECT 1")
        killer = await asyncpg.connect(empty_database)

        async def meet_the_killer() -> None:
            async with database.transaction() as doomed:
                await doomed.execute(text("SELECT 1"))
                await killer.execute(KILL_ALL)
                await doomed.execute(text("SELECT 1"))

        with pytest.raises(DatabaseUnavailable):
            await meet_the_killer()
        await killer.close()
        async with database.transaction() as fresh:
            assert await fresh.scalar(text("SELECT 1")) == 1
        assert await database.pool.fetchval("SELECT 1") == 1


async def test_a_lost_pool_connection_is_a_typed_outage(empty_database: str) -> None:
    async with Database.open(empty_database, application_name="t", connections_max=4) as database:
        with pytest.raises(DatabaseUnavailable):
            await database.pool.execute("SELECT pg_terminate_backend(pg_backend_pid())")


async def test_a_killed_backend_cuts_everybody_and_everybody_comes_back(
    postgres: TestPostgres, empty_database: str
) -> None:
    async with asyncio.timeout(20):
        async with Database.open(
            empty_database, application_name="t", connections_max=4
        ) as database:
            with pytest.raises(DatabaseUnavailable):
                await ask_a_killed_backend(database.pool)
        assert await answer_after_a_restart(empty_database) == 1


async def answer_after_a_restart(url: str) -> int:
    """Ask until the server answers: it may close a connection that was opened just before."""
    while True:
        try:
            async with Database.open(url, application_name="t", connections_max=4) as database:
                answer: int = await database.pool.fetchval("SELECT 1")
                return answer
        except DatabaseUnavailable:
            continue


async def ask_a_killed_backend(pool: Pool) -> None:
    async with pool.acquire() as connection:
        os.kill(await connection.fetchval("SELECT pg_backend_pid()"), signal.SIGKILL)
        await connection.execute("SELECT pg_sleep(10)")


async def test_a_transaction_left_open_does_not_leave_the_pool(empty_database: str) -> None:
    async with Database.open(empty_database, application_name="t", connections_max=2) as database:
        with pytest.raises(asyncpg.DivisionByZeroError):
            async with database.pool.acquire() as connection, connection.transaction():
                await connection.execute("SELECT 1 / 0")
        async with database.pool.acquire() as connection:
            assert not connection.is_in_transaction()


async def test_startup_waits_for_a_server_only_so_long(postgres: TestPostgres) -> None:
    nowhere = compose_url(role="r", password="p", database="d", host="127.0.0.1", port=1)
    clock = FakeClock()

    async def connect() -> None:
        async with Database.open(
            nowhere, application_name="t", connections_max=2, clock=clock, patience_s=1
        ):
            raise AssertionError("nobody can have answered")

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        attempt = tasks.create_task(_error_of(connect()))
        delays = []
        while not attempt.done():
            waiting = tasks.create_task(clock.until_sleeping())
            await asyncio.wait((attempt, waiting), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                delays.append(waiting.result())
                clock.advance(waiting.result())
            waiting.cancel()
    assert isinstance(attempt.result(), DatabaseUnavailable)
    assert delays == pytest.approx([0.1, 0.2, 0.4])


async def _error_of(attempt: Coroutine[None, None, None]) -> Exception | None:
    try:
        await attempt
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("change", ["password", "database", "scheme", "port"])
async def test_what_waiting_cannot_cure_is_refused_at_once(
    postgres: TestPostgres, change: str
) -> None:
    server = postgres.server
    url = {
        "password": server.url(role="postgres", password="wrong", database="postgres"),
        "database": with_database(server.admin_url(), "no such one"),
        "scheme": "mysql://somewhere/else",
        "port": "postgresql://somewhere:port/else",
    }[change]
    with pytest.raises(DatabaseMisconfigured):
        async with Database.open(url, application_name="t", connections_max=2):
            pass


async def test_sqlalchemy_reads_the_same_url(postgres: TestPostgres) -> None:
    server = postgres.server
    password = urlsplit(server.admin_url()).password or ""
    for host in (server.socket_directory, "127.0.0.1"):
        url = compose_url(
            role="postgres", password=password, database="postgres", host=host, port=server.port
        )
        engine = create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))
        async with engine.connect() as connection:
            assert await connection.scalar(text("SELECT 1")) == 1
        await engine.dispose()


async def test_who_finds_every_connection_taken_is_told_in_time_and_the_next_is_served(
    empty_database: str,
) -> None:
    async with Database.open(
        empty_database, application_name="t", connections_max=4, pool_patience_s=0.1
    ) as database:
        pool = database.pool
        async with all_taken(pool), asyncio.timeout(5):
            with pytest.raises(PoolExhausted, match=r"within 0\.1 s"):
                await pool.fetchval("SELECT 1")
            with pytest.raises(PoolExhausted):
                await pool.acquire().__aenter__()
        assert await pool.fetchval("SELECT 1") == 1


async def test_who_finds_the_engine_taken_is_told_in_time(empty_database: str) -> None:
    async with (
        Database.open(
            empty_database, application_name="t", connections_max=2, pool_patience_s=0.1
        ) as database,
        database.reading(),
    ):
        async with asyncio.timeout(5):
            with pytest.raises(PoolExhausted):
                await database.reading().__aenter__()


async def test_what_is_put_aside_is_free_when_all_others_are_taken(empty_database: str) -> None:
    async with (
        Database.open(
            empty_database,
            application_name="t",
            connections_max=4,
            side_connections=1,
            pool_patience_s=0.05,
        ) as database,
        database.pool.acquire(),
        database.pool.acquire(),
    ):
        with pytest.raises(PoolExhausted):
            await database.pool.fetchval("SELECT 1")
        assert await database.side_pool.fetchval("SELECT 1") == 1


async def test_nothing_put_aside_leaves_one_pool(empty_database: str) -> None:
    async with Database.open(empty_database, application_name="t", connections_max=4) as database:
        assert database.side_pool is database.pool


async def test_a_new_connection_knows_the_arrays_of_statements(empty_database: str) -> None:
    a, b = UUID(int=1), UUID(int=2)
    given = ([a, b, None], [1, 2**40, None], [1, -1, None], [True, False, None], [[a], [b]])
    async with (
        Database.open(empty_database, application_name="t", connections_max=4) as database,
        database.pool.acquire() as connection,
    ):
        row = await connection.fetchrow(
            "SELECT $1::uuid[], $2::bigint[], $3::int[], $4::bool[], $5::uuid[]", *given
        )
        assert row is not None
        assert tuple(row) == given
        assert await connection.fetchval(QUESTIONS_ABOUT_TYPES) == 0
        # Those of other types are asked for.
        await connection.fetchval("SELECT $1::date[]", [])
        assert await connection.fetchval(QUESTIONS_ABOUT_TYPES) == 1
