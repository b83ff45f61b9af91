"""A short-lived cache of API keys, so that not every request reads its key."""

from collections.abc import Awaitable, Callable

from gateway.identity.domain import StoredApiKey
from parley.bus import Bus
from parley.cache import BoundedCache
from parley.clock import Clock

#: How long a key that another process revoked may still be accepted, and one that it stored may
#: still be unknown: only that of the owner is known to anybody before it is stored.
TTL_S = 1.0
KEYS_MAX = 4096
#: Apart from the keys, so that requests with random ids evict none of those.
UNKNOWN_MAX = 1024

Find = Callable[[str], Awaitable[StoredApiKey | None]]


class ApiKeyCache:
    """Caches keys that exist, and apart from them ids that do not.

    Args:
        find: Reads a key from the database.
        clock: The clock of the TTL.
    """

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find = find
        self._kept: BoundedCache[str, StoredApiKey | None] = BoundedCache(
            KEYS_MAX, clock=clock, ttl_of=lambda _: TTL_S
        )
        self._unknown: BoundedCache[str, bool | None] = BoundedCache(
            UNKNOWN_MAX, clock=clock, ttl_of=lambda _: TTL_S
        )

    async def find(self, key_id: str) -> StoredApiKey | None:
        """Return the key with this id, at most a second old."""
        known = self._kept.get(key_id)
        if known is not None:
            return known
        found: StoredApiKey | None = None

        async def is_unknown() -> bool | None:
            nonlocal found
            found = await self._kept.get_or_read(key_id, lambda: self._find(key_id))
            return True if found is None else None

        await self._unknown.get_or_read(key_id, is_unknown)
        return found

    def forget(self) -> None:
        """Drop all entries; results of reads in progress are not cached either."""
        self._kept.clear()
        self._unknown.clear()

    async def follow(self, bus: Bus, topic: str) -> None:
        """Drop all entries on each notice, and when notices may be lost."""
        async with bus.subscribe(topic) as notices:
            async for _ in notices:
                self.forget()
