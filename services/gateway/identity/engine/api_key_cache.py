"""A short-lived cache of API keys, so that not every request reads its key."""

from collections.abc import Awaitable, Callable

from gateway.identity.domain import StoredApiKey
from parley.bus import Bus
from parley.clock import Clock

#: How long a key that another process revoked may still be accepted.
TTL_S = 1.0
KEYS_MAX = 4096

Find = Callable[[str], Awaitable[StoredApiKey | None]]


class ApiKeyCache:
    """Caches keys that exist; unknown ids are read every time.

    Args:
        find: Reads a key from the database.
        clock: The clock of the TTL.
    """

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._kept: dict[str, tuple[StoredApiKey, float]] = {}
        self._forgotten = 0

    async def find(self, key_id: str) -> StoredApiKey | None:
        """Return the key with this id, at most a second old."""
        now_s = self._clock.monotonic()
        kept = self._kept.get(key_id)
        if kept is not None and now_s < kept[1]:
            return kept[0]
        forgotten = self._forgotten
        found = await self._find(key_id)
        self._kept.pop(key_id, None)
        if found is not None and forgotten == self._forgotten:
            self._kept[key_id] = (found, now_s + TTL_S)
        if len(self._kept) > KEYS_MAX:
            del self._kept[next(iter(self._kept))]
        return found

    def forget(self) -> None:
        """Drop all entries; results of reads in progress are not cached either."""
        self._forgotten += 1
        self._kept.clear()

    async def follow(self, bus: Bus, topic: str) -> None:
        """Drop all entries on each notice, and when notices may be lost."""
        async with bus.subscribe(topic) as notices:
            async for _ in notices:
                self.forget()
