"""The names that users show, in memory, so that no answer and no event reads the database.

All users of the installation are held: some hundred bytes each. A notice about a user reads that
one again; if notices may be lost, all are read.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from parley.bus import Bus, Notice


class NameStore(Protocol):
    """Reads names of users."""

    async def names(self, user_ids: Sequence[str] | None) -> Mapping[str, str]:
        """Return the names of these users, or of all, by their ids."""
        ...


class UserNames:
    """The names of all users; `follow` keeps them up to date."""

    def __init__(self, store: NameStore) -> None:
        self._store = store
        self._names: dict[str, str] = {}

    def name_of(self, user_id: str) -> str:
        """Return the name that a user shows; empty if there is no such user."""
        return self._names.get(user_id, "")

    async def load(self) -> None:
        """Read all names."""
        self._names = dict(await self._store.names(None))

    async def follow(self, bus: Bus, topic: str) -> None:
        """Read the names again that change."""
        async with bus.subscribe(topic) as items:
            # What changed before the subscription is in no notice.
            await self.load()
            async for item in items:
                if isinstance(item, Notice):
                    self._names |= await self._store.names((item.id,))
                else:
                    await self.load()
