"""Moves of chats to other workspaces: between turns only."""

from chatd.chats.domain.chat import Status
from chatd.chats.domain.errors import AgentAtWork, TransitionNotAllowed
from chatd.chats.domain.transitions import AT_REST
from chatd.chats.store.statements import LOCK_ORDER
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import Connection

# The chats that work in the workspace which a chat would leave: the chat, and agents below it that
# have none of their own. No turn of theirs begins before the transaction ends.
# May run: owner.
LOCK_WORKERS_OF_WORKSPACE = f"""
    SELECT c.id, e.status FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
    WHERE (c.id = $1 OR c.root_chat_id = $1 AND c.workspace_id IS NULL) AND c.owner_id = $2
    {LOCK_ORDER} FOR NO KEY UPDATE OF e
"""

# Whether a chat has this workspace. A statement of its own, after the lock: a turn binds its chat
# with a lock of the execution, and one that was waited for is seen only by a later statement.
# May run: owner.
SELECT_HAS_WORKSPACE = """
    SELECT workspace_id IS NOT DISTINCT FROM nullif($3::text, '')::uuid
    FROM chat.chats WHERE id = $1 AND owner_id = $2
"""


async def require_rest(
    connection: Connection, chat_id: ChatId, owner_id: OwnerId, workspace_id: str
) -> None:
    """Refuse another workspace while a turn works in the present one.

    The prompt of a turn names its workspace, and its processes, checkpoints and calls are there.
    The same workspace is not refused, and no turn binds the chat to another one before the
    transaction ends.

    Raises:
        TransitionNotAllowed: A turn of the chat is under way.
        AgentAtWork: A turn of an agent is, which works in the same workspace.
    """
    rows = await connection.fetch(LOCK_WORKERS_OF_WORKSPACE, chat_id, owner_id)
    if await connection.fetchval(SELECT_HAS_WORKSPACE, chat_id, owner_id, workspace_id):
        return
    for row in rows:
        if (status := Status(row["status"])) in AT_REST:
            continue
        if str(row["id"]) == chat_id:
            raise TransitionNotAllowed(status, "UpdateChat")
        raise AgentAtWork(ChatId(str(row["id"])), status)
