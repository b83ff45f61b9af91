"""Bounds what is done for one user at a time, and for all together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from chatd.primitives.domain.ids import OwnerId


@dataclass(slots=True)
class _Limit:
    places: asyncio.Semaphore
    users: int = 0


class OwnerLimits:
    """Gives places, at most so many to one user.

    Args:
        of_owner_max: How many one user has.
        all_max: How many all users have.
    """

    def __init__(self, *, of_owner_max: int, all_max: int) -> None:
        self._of_owner_max = of_owner_max
        self._all = asyncio.Semaphore(all_max)
        self._limits: dict[OwnerId, _Limit] = {}

    @asynccontextmanager
    async def place(self, owner_id: OwnerId) -> AsyncIterator[None]:
        """Hold a place, which is waited for."""
        limit = self._limits.setdefault(owner_id, _Limit(asyncio.Semaphore(self._of_owner_max)))
        limit.users += 1
        try:
            # The user's own first, so that who waits for it keeps no place from others.
            async with limit.places, self._all:
                yield
        finally:
            limit.users -= 1
            if not limit.users:
                del self._limits[owner_id]
