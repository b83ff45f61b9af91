"""Limits the uploads that are received at a time, in all and of one user."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chatd.primitives.domain.ids import OwnerId

#: Each upload holds a file in memory.
UPLOADS_MAX: Final = 16
#: Of one user, so that uploads that take long leave places to others.
UPLOADS_PER_OWNER_MAX: Final = 4


class UploadSlots:
    """Places for uploads; those for which there is none wait, in order."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(UPLOADS_MAX)
        self._of_owners: dict[OwnerId, asyncio.Semaphore] = {}
        self._uploads: Counter[OwnerId] = Counter()

    @asynccontextmanager
    async def taken(self, owner_id: OwnerId) -> AsyncIterator[None]:
        """Hold a place while the context is open."""
        own = self._of_owners.setdefault(owner_id, asyncio.Semaphore(UPLOADS_PER_OWNER_MAX))
        self._uploads[owner_id] += 1
        try:
            async with own, self._all:
                yield
        finally:
            self._uploads[owner_id] -= 1
            if not self._uploads[owner_id]:
                del self._uploads[owner_id], self._of_owners[owner_id]
