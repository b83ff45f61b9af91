"""Owners of chats: checked before every command, because commands use the owner's credentials."""

from collections import OrderedDict

from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import Pool, typed_outages

OWNERS_MAX = 10_000

# The owner of a chat; the caller compares.
# May run: user.
SELECT_OWNER = "SELECT owner_id FROM chat.chats WHERE id = $1"


class Ownership:
    """A cache of the owners of chats: the owner of a chat never changes."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._owners: OrderedDict[ChatId, OwnerId] = OrderedDict()

    async def require(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Check that a user owns a chat.

        Raises:
            ChatNotFound: There is no such chat, or another user owns it.
        """
        owner = self._owners.get(chat_id)
        if owner is None:
            owner = await self._read(chat_id)
        if owner != owner_id:
            raise ChatNotFound(chat_id)

    def learn(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Cache the owner of a chat that was created here."""
        self._owners[chat_id] = owner_id
        if len(self._owners) > OWNERS_MAX:
            self._owners.popitem(last=False)

    async def _read(self, chat_id: ChatId) -> OwnerId | None:
        with typed_outages():
            found = await self._pool.fetchval(SELECT_OWNER, chat_id)
        if found is None:
            return None
        owner = OwnerId(str(found))
        self.learn(chat_id, owner)
        return owner
