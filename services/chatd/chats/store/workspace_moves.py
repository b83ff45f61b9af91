"""Moves of chats to other workspaces: between turns only."""

from chatd.chats.domain.chat import Status
from chatd.chats.domain.errors import AgentAtWork, TransitionNotAllowed
from chatd.chats.domain.transitions import AT_REST
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import Connection

# The chats that work in the workspace which a chat would leave: the chat, and agents below it that
# have none of their own. No turn of theirs begins before the transaction ends.
# May run: owner.
LOCK_WORKERS_OF_WORKSPACE = """
    SELECT c.id, e.status FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
    WHERE (c.id = $1 OR c.root_chat_id = $1 AND c.workspace_id IS NULL) AND c.owner_id = $2
        AND EXISTS (SELECT 1 FROM chat.chats moved WHERE moved.id = $1
            AND moved.workspace_id IS DISTINCT FROM nullif($3::text, '')::uuid)
    ORDER BY e.chat_id FOR NO KEY UPDATE OF e
"""


async def require_rest(
    connection: Connection, chat_id: ChatId, owner_id: OwnerId, workspace_id: str
) -> None:
    """Refuse another workspace while a turn works in the present one.

    A turn has told its model where it works, and its processes, checkpoints and calls are there.

    Raises:
        TransitionNotAllowed: A turn of the chat is under way.
        AgentAtWork: A turn of an agent is, which works in the same workspace.
    """
    rows = await connection.fetch(LOCK_WORKERS_OF_WORKSPACE, chat_id, owner_id, workspace_id)
    for row in rows:
        if (status := Status(row["status"])) in AT_REST:
            continue
        if str(row["id"]) == chat_id:
            raise TransitionNotAllowed(status, "UpdateChat")
        raise AgentAtWork(ChatId(str(row["id"])), status)
