"""The cached devices of users, so that the ends of most turns cost no query."""

from chatd.primitives.domain.ids import OwnerId
from chatd.push.domain.ports import StoredTargets
from chatd.push.domain.subscription import PushTarget
from parley.cache import BoundedCache
from parley.clock import Clock

USERS_MAX = 10_000
EXPIRES_S = 180.0


class CachedTargets:
    """Caches the devices of users; a read under way while they change is not cached."""

    def __init__(self, stored: StoredTargets, clock: Clock) -> None:
        self._stored = stored
        self._known: BoundedCache[OwnerId, tuple[PushTarget, ...]] = BoundedCache(
            USERS_MAX, clock=clock, ttl_of=lambda _: EXPIRES_S
        )

    async def of(self, owner_id: OwnerId) -> tuple[PushTarget, ...]:
        """Return the devices of a user.

        Raises:
            DatabaseUnavailable: They are not cached and cannot be read.
        """
        return await self._known.get_or_read(owner_id, lambda: self._stored.targets(owner_id))

    def forget(self, owner_id: OwnerId) -> None:
        """Forget the devices of a user, because they changed here or in another process."""
        self._known.forget(owner_id)

    def clear(self) -> None:
        """Forget everything, because a notice may have been lost."""
        self._known.clear()
