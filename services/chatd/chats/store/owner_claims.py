"""Claims of owners: what a tool of chatd writes is written only while its chat keeps its owner."""

from chatd.chats.domain.errors import FenceLost
from chatd.primitives.domain.ids import OwnerClaim
from parley.postgres import Connection

# Whether a chat still has the epoch under which a tool acts; it keeps it until the end of the
# transaction.
# May run: process.
HOLD_CLAIM = """
    SELECT 1 FROM chat.chat_exec WHERE chat_id = $1 AND owner_epoch = $2 FOR SHARE
"""


async def hold_claim(connection: Connection, claim: OwnerClaim) -> None:
    """Require that a chat has the epoch of a claim, until the end of the transaction.

    Raises:
        FenceLost: Another process owns the chat, or the chat was deleted.
    """
    if await connection.fetchval(HOLD_CLAIM, claim.chat_id, claim.owner_epoch) is None:
        raise FenceLost(claim.chat_id)
