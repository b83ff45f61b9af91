"""Transactions that wait for each other, without chance."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from parley.clock import SystemClock
from parley.postgres import ConflictRetries, Connection, Pool

RETRIES = ConflictRetries(SystemClock(), lambda: 0.0)

WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@asynccontextmanager
async def never_the_victim(connection: Connection) -> AsyncIterator[None]:
    """Open a transaction that does not look for deadlocks itself: the other one is ended."""
    async with connection.transaction():
        await connection.execute("SET LOCAL deadlock_timeout = '60s'")
        yield


async def until_waiting(pool: Pool, sessions: int = 1) -> None:
    """Wait until so many sessions of the database wait for locks."""
    async with asyncio.timeout(10):
        while await pool.fetchval(WAITING) < sessions:
            await pool.execute("SELECT pg_sleep(0.005)")
