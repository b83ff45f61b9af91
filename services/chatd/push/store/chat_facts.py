"""What is stored of a chat when its owner is about to be told of a change."""

from chatd.chats.domain.chat import Message, Status
from chatd.chats.store.queries import MESSAGE_COLUMNS
from chatd.chats.store.rows import message_of
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.push.domain.notification import ChatFacts
from parley.postgres import Pool

# Without authorisation: a chat that changed in this process, for its owner, unless that user is
# suspended.
# May run: process.
SELECT_FACTS = """
    SELECT c.owner_id, c.title, c.parent_chat_id IS NULL AS is_root, e.archived AS is_archived,
        e.status, e.history_version, e.queue_length,
        EXISTS (SELECT 1 FROM chat.goals g
            WHERE g.chat_id = c.id AND g.state = 'active') AS has_goal,
        EXISTS (SELECT 1 FROM chat.schedules s
            JOIN chat.chat_messages m ON m.chat_id = s.chat_id AND m.id = e.turn_id
            WHERE s.chat_id = c.id AND s.state = 'active' AND s.cron <> ''
                AND m.origin = 'schedule') AS is_scheduled
    FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
    WHERE c.id = $1
        AND NOT EXISTS (SELECT 1 FROM chat.suspended_users b WHERE b.user_id = c.owner_id)
"""

# The answer that asks.
# May run: process.
SELECT_ANSWER = f"""
    SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages
    WHERE chat_id = $1 AND NOT is_deleted AND role = 'assistant' ORDER BY id DESC LIMIT 1
"""


class PostgresChatFacts:
    """Reads chats whose owners are told of changes."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def facts(self, chat_id: ChatId) -> ChatFacts | None:
        """Return the facts of a chat; None if it is deleted or its owner is suspended."""
        row = await self._pool.fetchrow(SELECT_FACTS, chat_id)
        if row is None:
            return None
        return ChatFacts(
            owner_id=OwnerId(str(row["owner_id"])),
            title=row["title"],
            is_root=row["is_root"],
            is_archived=row["is_archived"],
            status=Status(row["status"]),
            history_version=row["history_version"],
            queue_length=row["queue_length"],
            has_goal=row["has_goal"],
            is_scheduled=row["is_scheduled"],
        )

    async def last_answer(self, chat_id: ChatId) -> Message | None:
        """Return the newest answer of a chat."""
        row = await self._pool.fetchrow(SELECT_ANSWER, chat_id)
        return None if row is None else message_of(row)
