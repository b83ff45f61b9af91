"""Reads how far the histories of a chat tree are."""

from collections.abc import Mapping

from chatd.primitives.domain.ids import ChatId
from parley.postgres import Pool

# The chats of a tree, for the worker of one of them.
# May run: process.
SELECT_VERSIONS = """
    SELECT e.chat_id, e.history_version FROM chat.chats c
    JOIN chat.chat_exec e ON e.chat_id = c.id WHERE c.root_chat_id = $1
"""


class TreeVersions:
    """The chats of trees."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def of_tree(self, root_chat_id: ChatId) -> Mapping[ChatId, int]:
        """Return the chats of a tree, with the versions of their histories."""
        rows = await self._pool.fetch(SELECT_VERSIONS, root_chat_id)
        return {ChatId(str(row["chat_id"])): row["history_version"] for row in rows}
