"""Claims of owners: a tool of chatd writes only while its chat keeps its owner and its turn."""

from chatd.chats.domain.agents import AgentsRefused
from chatd.chats.domain.chat import Status
from chatd.chats.domain.errors import FenceLost
from chatd.primitives.domain.ids import OwnerClaim
from parley.postgres import Connection, Pool

# The status of a chat that still has the epoch and the turn in which a tool acts; it keeps these
# until the end of the transaction.
# May run: process.
HOLD_CLAIM = """
    SELECT status FROM chat.chat_exec
    WHERE chat_id = $1 AND owner_epoch = $2 AND turn_id = $3 FOR SHARE
"""


async def hold_claim(connection: Connection, claim: OwnerClaim) -> None:
    """Require that a chat has the epoch and the turn of a claim, until the transaction ends.

    Raises:
        FenceLost: Another process owns the chat, its turn is over, or the chat was deleted.
    """
    await claimed_status(connection, claim)


async def hold_running_claim(connection: Connection, claim: OwnerClaim) -> None:
    """Require the same, and that the chat is not interrupted: it does nothing to its agents then.

    Raises:
        AgentsRefused: The chat was interrupted.
        FenceLost: Another process owns the chat, its turn is over, or the chat was deleted.
    """
    if await claimed_status(connection, claim) is not Status.RUNNING:
        raise interrupted_chat()


async def claimed_status(source: "Pool | Connection", claim: OwnerClaim) -> Status:
    """Return the status of the chat of a claim, which it keeps until the transaction ends.

    Raises:
        FenceLost: Another process owns the chat, its turn is over, or the chat was deleted.
    """
    held = (claim.chat_id, claim.owner_epoch, claim.turn_id)
    status = await source.fetchval(HOLD_CLAIM, *held)
    if status is None:
        raise FenceLost(claim.chat_id)
    return Status(status)


async def why_refused(pool: Pool, claim: OwnerClaim) -> Exception:
    """Return the error of a write that the claim of a running chat did not allow."""
    try:
        await claimed_status(pool, claim)
    except FenceLost as lost:
        return lost
    return interrupted_chat()


def interrupted_chat() -> AgentsRefused:
    """Return the refusal of what a chat that was interrupted asks of its agents."""
    return AgentsRefused("this chat was interrupted", "AGENTS_INTERRUPTED")
