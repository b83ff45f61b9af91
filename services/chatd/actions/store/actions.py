"""Reads the actions of chats."""

import asyncpg

from chatd.actions.domain.action import ActionNotFound, PlanNotFound, StoredAction
from chatd.chats.domain.writes import ActionOutcome
from chatd.chats.store.codec import stored_text
from chatd.chats.store.view_rows import CHATS, READABLE
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, OwnerId
from chatd.primitives.domain.requests import Reader
from parley.postgres import Pool

COLUMNS = """
    a.id, a.chat_id, a.message_id, a.tool_call_id, a.tool_name, a.mcp_server_id, a.kind,
    a.arguments::text AS arguments, a.reason, a.mode, a.asked_at, a.deadline_at, a.ended_at,
    a.outcome, a.ended_by, a.answer::text AS answer, c.title
"""

# What the chats of a user wait for, the longest first.
# May run: owner.
SELECT_OPEN = f"""
    SELECT {COLUMNS} FROM chat.chat_actions a JOIN chat.chats c ON c.id = a.chat_id
    WHERE a.ended_at IS NULL AND a.asked_at IS NOT NULL AND a.kind <> 'agents'
        AND c.owner_id = $1
        AND ($2::uuid IS NULL OR (a.asked_at, a.id) > (
            SELECT last.asked_at, last.id FROM chat.chat_actions last WHERE last.id = $2))
    ORDER BY a.asked_at, a.id LIMIT $3
"""

# One action of a chat that the caller may read.
# May run: reader.
SELECT_ONE = f"""
    SELECT {COLUMNS} FROM {CHATS} JOIN chat.chat_actions a ON a.chat_id = c.id
    WHERE c.id = $1 AND {READABLE} AND a.id = $4
"""

# The newest plan of a chat that the caller may read; plans of deleted messages do not count.
# May run: reader.
SELECT_PLAN = f"""
    SELECT {COLUMNS} FROM {CHATS} JOIN chat.chat_actions a ON a.chat_id = c.id
    JOIN chat.chat_messages m ON m.chat_id = a.chat_id AND m.id = a.message_id
    WHERE c.id = $1 AND {READABLE} AND a.kind = 'plan' AND NOT m.is_deleted
    ORDER BY a.created_at DESC LIMIT 1
"""


class Actions:
    """The actions of all chats."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list_open(
        self, owner_id: OwnerId, *, after: str | None, actions_max: int
    ) -> tuple[StoredAction, ...]:
        """Return what the chats of a user wait for, the longest first, after one of them."""
        rows = await self._pool.fetch(SELECT_OPEN, owner_id, after, actions_max)
        return tuple(map(_action_of, rows))

    async def find(self, chat_id: ChatId, reader: Reader, action_id: str) -> StoredAction:
        """Return one action, open or ended.

        Raises:
            ActionNotFound: There is none in a chat that the reader may see.
        """
        row = await self._pool.fetchrow(
            SELECT_ONE, chat_id, reader.id, list(reader.group_ids), action_id
        )
        if row is None:
            raise ActionNotFound(chat_id, action_id)
        return _action_of(row)

    async def plan(self, chat_id: ChatId, reader: Reader) -> StoredAction:
        """Return the newest plan of a chat.

        Raises:
            PlanNotFound: There is none in a chat that the reader may see.
        """
        row = await self._pool.fetchrow(SELECT_PLAN, chat_id, reader.id, list(reader.group_ids))
        if row is None:
            raise PlanNotFound(chat_id)
        return _action_of(row)


def _action_of(row: asyncpg.Record) -> StoredAction:
    outcome, answer = row["outcome"], row["answer"]
    return StoredAction(
        id=ExecutionId(str(row["id"])),
        chat_id=ChatId(str(row["chat_id"])),
        message_id=MessageId(row["message_id"]),
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        mcp_server_id=row["mcp_server_id"],
        kind=PendingKind(row["kind"]),
        args_json=stored_text(row["arguments"]),
        reason=row["reason"],
        mode=ChatMode(row["mode"]),
        asked_at=row["asked_at"],
        deadline_at=row["deadline_at"],
        ended_at=row["ended_at"],
        outcome=None if outcome is None else ActionOutcome(outcome),
        ended_by=row["ended_by"],
        answer_json="" if answer in (None, "null") else stored_text(answer),
        chat_title=row["title"],
    )
