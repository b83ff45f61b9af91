"""Catalogues in PostgreSQL, so that the first turn after a restart need not wait for servers.

They are a copy of what is in memory: a stored catalogue serves for seconds only, and then the
server is asked again.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from mcpgateway.servers.domain import Catalogue, Target
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.postgres import Database

CONTENT_BYTES_MAX: Final = 1024 * 1024
STORED_MAX: Final = 2000
KEPT: Final = timedelta(days=7)
#: An unchanged catalogue is stored again after this long.
WRITE_S: Final = 3600.0
EXPIRE_S: Final = 3600.0

# May run: service.
_READ = """
    SELECT content, fetched_at FROM mcp.catalogues
    WHERE server_id = $1 AND user_id = $2 AND server_version = $3
"""
# A server that was deleted meanwhile has no catalogue.
# May run: service.
_PUT = """
    INSERT INTO mcp.catalogues (server_id, user_id, server_version, content, fetched_at)
    SELECT id, $2, $3, $4, $5 FROM mcp.servers WHERE id = $1
    ON CONFLICT (server_id, user_id) DO UPDATE SET server_version = excluded.server_version,
        content = excluded.content, fetched_at = excluded.fetched_at
    WHERE catalogues.server_version <= excluded.server_version
"""
# May run: process.
_DELETE_OF_USER = "DELETE FROM mcp.catalogues WHERE user_id = $1"
# May run: process.
_DELETE_OLD = """
    DELETE FROM mcp.catalogues WHERE fetched_at < now() - $1::interval OR fetched_at < (
        SELECT fetched_at FROM mcp.catalogues ORDER BY fetched_at DESC OFFSET $2 LIMIT 1)
"""


@dataclass(frozen=True, slots=True)
class StoredCatalogue:
    """A catalogue as stored."""

    catalogue: Catalogue
    fetched_at: datetime


class StoredCatalogues:
    """The stored catalogues of all users, of which the newest are kept."""

    def __init__(self, database: Database, clock: Clock, stored_max: int = STORED_MAX) -> None:
        self._database = database
        self._stored_max = stored_max
        # Digests of what the rows hold, by server and user.
        self._written: BoundedCache[tuple[str, str], bytes] = BoundedCache(
            STORED_MAX, clock=clock, ttl_of=lambda _: WRITE_S
        )

    async def find(self, target: Target) -> StoredCatalogue | None:
        """Return what the server as configured now offered the user before."""
        server = target.server
        row = await self._database.pool.fetchrow(_READ, server.id, target.user_id, server.version)
        if row is None:
            return None
        try:
            catalogue = msgspec.msgpack.decode(row["content"], type=Catalogue)
        except msgspec.MsgspecError:
            return None  # Another version of mcpgateway stored it.
        return StoredCatalogue(catalogue, row["fetched_at"])

    async def put(self, target: Target, catalogue: Catalogue, fetched_at: datetime) -> None:
        """Store a catalogue, unless it is stored already or is too large."""
        content = msgspec.msgpack.encode(catalogue)
        key = target.server.id, target.user_id
        digest = hashlib.sha256(b"%d " % target.server.version + content).digest()
        if len(content) > CONTENT_BYTES_MAX or self._written.get(key) == digest:
            return
        await self._database.pool.execute(
            _PUT, target.server.id, target.user_id, target.server.version, content, fetched_at
        )
        self._written.put(key, digest)

    async def delete_of_user(self, user_id: str) -> None:
        """Delete what a user was offered."""
        await self._database.pool.execute(_DELETE_OF_USER, user_id)

    async def expire(self, clock: Clock) -> None:
        """Delete old catalogues periodically."""
        while True:
            await self.delete_old()
            await clock.sleep(EXPIRE_S)

    async def delete_old(self) -> None:
        """Delete catalogues that are old, and the oldest of too many."""
        await self._database.pool.execute(_DELETE_OLD, KEPT, self._stored_max - 1)
