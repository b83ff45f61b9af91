"""Claims of owners: what a tool of chatd writes is written only while its chat keeps its owner."""

from chatd.chats.domain.agents import AgentsRefused
from chatd.chats.domain.chat import Status
from chatd.chats.domain.errors import FenceLost
from chatd.primitives.domain.ids import OwnerClaim
from parley.postgres import Connection, Pool

# The status of a chat that still has the epoch under which a tool acts; it keeps both until the end
# of the transaction.
# May run: process.
HOLD_CLAIM = """
    SELECT status FROM chat.chat_exec WHERE chat_id = $1 AND owner_epoch = $2 FOR SHARE
"""


async def hold_claim(connection: Connection, claim: OwnerClaim) -> None:
    """Require that a chat has the epoch of a claim, until the end of the transaction.

    Raises:
        FenceLost: Another process owns the chat, or the chat was deleted.
    """
    if await connection.fetchval(HOLD_CLAIM, claim.chat_id, claim.owner_epoch) is None:
        raise FenceLost(claim.chat_id)


async def hold_running_claim(connection: Connection, claim: OwnerClaim) -> None:
    """Require the same, and that the chat is not interrupted: it does nothing to its agents then.

    Raises:
        AgentsRefused: The chat was interrupted.
        FenceLost: Another process owns the chat, or the chat was deleted.
    """
    status = await connection.fetchval(HOLD_CLAIM, claim.chat_id, claim.owner_epoch)
    if status is None:
        raise FenceLost(claim.chat_id)
    if status != Status.RUNNING:
        raise interrupted_chat()


# May run: process.
async def why_refused(pool: Pool, claim: OwnerClaim) -> Exception:
    """Return the error of a write that the claim of a running chat did not allow."""
    status = await pool.fetchval(HOLD_CLAIM, claim.chat_id, claim.owner_epoch)
    return FenceLost(claim.chat_id) if status is None else interrupted_chat()


def interrupted_chat() -> AgentsRefused:
    """Return the refusal of what a chat that was interrupted asks of its agents."""
    return AgentsRefused("this chat was interrupted", "AGENTS_INTERRUPTED")
