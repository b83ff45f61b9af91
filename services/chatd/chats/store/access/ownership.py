"""Owners of chats: checked before every command, because commands use the owner's credentials."""

from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.cache import BoundedCache
from parley.postgres import Pool

OWNERS_MAX = 10_000

# The owner of a chat; the caller compares.
# May run: user.
SELECT_OWNER = "SELECT owner_id FROM chat.chats WHERE id = $1"


class Ownership:
    """A cache of the owners of chats: the owner of a chat never changes."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._owners: BoundedCache[ChatId, OwnerId | None] = BoundedCache(OWNERS_MAX)

    async def require(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Check that a user owns a chat.

        Raises:
            ChatNotFound: There is no such chat, or another user owns it.
        """
        if await self._owners.get_or_read(chat_id, lambda: self._read(chat_id)) != owner_id:
            raise ChatNotFound(chat_id)

    def learn(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Cache the owner of a chat that was created here."""
        self._owners.put(chat_id, owner_id)

    async def _read(self, chat_id: ChatId) -> OwnerId | None:
        found = await self._pool.fetchval(SELECT_OWNER, chat_id)
        return None if found is None else OwnerId(str(found))
