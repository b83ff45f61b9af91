"""Etag preconditions of changes."""

from chatd.chats.store.view_rows import CHATS, VIEW_COLUMNS, view_of
from chatd.primitives.domain.errors import ChatNotFound, VersionConflict
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import Connection

# A command locks its execution before other rows of a chat, so this comes first here too.
# May run: owner.
LOCK_EXECUTION = f"""
    SELECT 1 FROM {CHATS} WHERE c.id = $1 AND c.owner_id = $2 FOR NO KEY UPDATE OF e
"""

# One chat of its owner, locked until the transaction ends.
# May run: owner.
LOCK_VIEW = f"""
    SELECT {VIEW_COLUMNS} FROM {CHATS}
    WHERE c.id = $1 AND c.owner_id = $2 FOR NO KEY UPDATE OF c
"""


async def expect(
    connection: Connection,
    chat_id: ChatId,
    *,
    owner_id: OwnerId,
    etag: str,
) -> None:
    """Lock a chat until the transaction ends, if it has this etag.

    An empty etag is no precondition.

    Raises:
        ChatNotFound: There is no such chat of this owner.
        VersionConflict: It has another etag.
    """
    if not etag:
        return
    await connection.execute(LOCK_EXECUTION, chat_id, owner_id)
    row = await connection.fetchrow(LOCK_VIEW, chat_id, owner_id)
    if row is None:
        raise ChatNotFound(chat_id)
    current = view_of(row).etag
    if current != etag:
        raise VersionConflict(current)
