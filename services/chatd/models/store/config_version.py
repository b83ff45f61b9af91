"""The number that grows with every change of configuration, and whoever is told of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from parley.postgres import Connection, Pool, typed_outages

# Told after the commit: what changed, and the number then.
Changed = Callable[[str, int], None]

CATALOGUE = "catalogue"

# House-keeping, for no user: has anything changed?
SELECT_VERSION = "SELECT version FROM chat.config_version"

# Count one more change; those who change something at once go one after another.
BUMP_VERSION = "UPDATE chat.config_version SET version = version + 1 RETURNING version"


def ignore_event(what: str, version: int) -> None:
    """Let a change pass."""


class ConfigChanges:
    """Makes changes of configuration, one after another, and tells of each after its commit."""

    def __init__(self, pool: Pool, changed: Changed = ignore_event) -> None:
        self.pool = pool
        self._changed = changed

    @asynccontextmanager
    async def change(self, what: str = CATALOGUE) -> AsyncIterator[Connection]:
        """Give a transaction in which nobody else changes the configuration."""
        with typed_outages():
            async with self.pool.acquire() as connection, connection.transaction():
                version: int = await connection.fetchval(BUMP_VERSION)
                yield connection
        self._changed(what, version)
