"""A pool that has nothing left to lend."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from parley.postgres import Pool


@asynccontextmanager
async def all_taken(pool: Pool) -> AsyncIterator[None]:
    """Hold every connection of a pool."""
    async with AsyncExitStack() as held:
        for _ in range(pool.size_max):
            await held.enter_async_context(pool.acquire())
        yield
