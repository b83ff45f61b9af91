"""The version of the configuration, which grows with every change, and its callback."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from parley.postgres import Connection, Pool

# Is called after the commit: what changed, and the new version.
Changed = Callable[[str, int], None]

CATALOGUE = "catalogue"

# For no user: the current version.
# May run: process.
SELECT_VERSION = "SELECT version FROM chat.config_version"

# Increment the version; the row lock serialises concurrent changes.
# May run: user.
BUMP_VERSION = "UPDATE chat.config_version SET version = version + 1 RETURNING version"


def ignore_event(what: str, version: int) -> None:
    """Ignore a change."""


class ConfigChanges:
    """Serialises changes of the configuration, and calls `changed` after each commit."""

    def __init__(self, pool: Pool, changed: Changed = ignore_event) -> None:
        self.pool = pool
        self._changed = changed

    @asynccontextmanager
    async def change(self, what: str = CATALOGUE) -> AsyncIterator[Connection]:
        """Yield a connection in a transaction that excludes other configuration changes."""
        async with self.pool.acquire() as connection, connection.transaction():
            version: int = await connection.fetchval(BUMP_VERSION)
            yield connection
        self._changed(what, version)
