"""Limits the copies of trees that are made at a time, in all and for one user."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

#: More copies wait.
COPIES_MAX: Final = 4
#: Of one user, so that copies that take minutes leave places to others.
COPIES_OF_USER_MAX: Final = 2


class CopyPlaces:
    """Places for copies; those for which there is none wait, in order."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(COPIES_MAX)
        # Weak references: those of users without copies are dropped.
        self._of_users: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def held(self, user_id: str) -> AsyncIterator[None]:
        """Hold a place while the context is open."""
        own = self._of_users.setdefault(user_id, asyncio.Semaphore(COPIES_OF_USER_MAX))
        # The user's own first: one that waits for it keeps no place from others.
        async with own, self._all:
            yield
