"""API keys as they were a moment ago, so that a busy caller is not looked up at every request."""

from collections.abc import Awaitable, Callable

from gateway.identity.domain import StoredApiKey
from parley.bus import Bus
from parley.clock import Clock

#: How long a key that was revoked behind our back may still be good.
TTL_S = 1.0
KEYS_MAX = 4096

Find = Callable[[str], Awaitable[StoredApiKey | None]]


class ApiKeyCache:
    """Remembers keys that were found; one that does not exist is looked for every time.

    Args:
        find: Reads a key from the database.
        clock: Tells how long ago that was.
    """

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._kept: dict[str, tuple[StoredApiKey, float]] = {}
        self._forgotten = 0

    async def find(self, key_id: str) -> StoredApiKey | None:
        """Return the key with this id as it is, or was a second ago at most."""
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
        """Look every key up anew, those included that are being looked up right now."""
        self._forgotten += 1
        self._kept.clear()

    async def follow(self, bus: Bus, topic: str) -> None:
        """Forget the keys whenever another process tells of a change, or may have."""
        async with bus.subscribe(topic) as notices:
            async for _ in notices:
                self.forget()
