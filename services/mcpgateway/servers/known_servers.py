"""Servers as this process read them last, so that turns and calls need not read them again.

An entry is dropped when the process changes the server itself, or when the bus says that another
one did. What is read from here may therefore be old for a moment: a call is journaled only if its
server still has the version that was read, and what is not journaled reads the stored server.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from mcpgateway.servers.domain import Availability, Credentials, Server
from mcpgateway.servers.store import Servers
from parley.cache import BoundedCache
from parley.clock import Clock

#: Limits the effect of a lost notice.
TTL_S: Final = 10.0
SERVERS_MAX: Final = 2000


class KnownServers:
    """Reads servers and their secrets from the cache, or from the store."""

    def __init__(self, servers: Servers, clock: Clock) -> None:
        self._servers = servers
        self._forgotten = 0
        self._by_id: BoundedCache[str, Server] = BoundedCache(
            SERVERS_MAX, clock=clock, ttl_of=lambda _: TTL_S
        )
        self._enabled: BoundedCache[Availability, Mapping[str, Server]] = BoundedCache(
            len(Availability), clock=clock, ttl_of=lambda _: TTL_S
        )
        self._credentials: BoundedCache[tuple[str, int], Credentials] = BoundedCache(
            SERVERS_MAX, clock=clock, ttl_of=lambda _: TTL_S
        )

    async def find(self, server_ids: Sequence[str]) -> Mapping[str, Server]:
        """Return the existing ones of these servers, by id."""
        known = {server_id: self._by_id.get(server_id) for server_id in server_ids}
        missing = [server_id for server_id, server in known.items() if server is None]
        read: Mapping[str, Server] = {}
        if missing:
            forgotten = self._forgotten
            read = await self._servers.find(missing)
            if forgotten == self._forgotten:
                for server in read.values():
                    self._by_id.put(server.id, server)
        found = {server_id: known[server_id] or read.get(server_id) for server_id in server_ids}
        return {server_id: server for server_id, server in found.items() if server is not None}

    async def stored(self, server_id: str) -> Server | None:
        """Return a server as it is stored now; drop what is cached of another version."""
        found = (await self._servers.find([server_id])).get(server_id)
        known = self._by_id.get(server_id)
        if known is not None and (found is None or found.version != known.version):
            self.forget(server_id)
        return found

    async def enabled(self, availability: Availability) -> Mapping[str, Server]:
        """Return the enabled servers with an availability, ordered by slug."""
        return await self._enabled.get_or_read(
            availability, lambda: self._servers.enabled(availability)
        )

    async def credentials(self, server: Server) -> Credentials:
        """Return the server's secrets, decrypted.

        Raises:
            SecretsError: They cannot be decrypted with the keys of this process.
        """
        if not server.has_credentials:
            return Credentials()
        return await self._credentials.get_or_read(
            (server.id, server.version), lambda: self._servers.credentials(server)
        )

    def forget(self, server_id: str | None = None) -> None:
        """Drop what is cached of a server, or of all; results of reads in progress as well."""
        self._forgotten += 1
        self._enabled.clear()
        self._credentials.clear()
        if server_id is None:
            self._by_id.clear()
        else:
            self._by_id.forget(server_id)
