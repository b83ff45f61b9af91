"""Reads the actions of chats."""

import asyncpg

from chatd.actions.domain.action import (
    ActionNotFound,
    PlanNotFound,
    StoredAction,
    UnknownCall,
)
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

# Calls in a user's chats and the chats below them, since a person last sent a message to the root,
# of which it is not known whether they ran. That message counts also if it was deleted since. Only
# what changed after it is read, of each chat the newest $4 messages, and only contents with such an
# outcome are split: the quotation marks within results are escaped.
# May run: owner.
SELECT_UNKNOWN = """
    WITH roots AS (
        SELECT last.id, coalesce(said.id, 0) AS said_id,
            coalesce(said.created_at, last.created_at) AS begun_at
        FROM (
            SELECT c.id, c.created_at FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
            WHERE c.owner_id = $1 AND c.parent_chat_id IS NULL AND NOT e.archived
            ORDER BY e.changed_at DESC LIMIT $2) last
        LEFT JOIN LATERAL (
            SELECT m.id, m.created_at FROM chat.chat_messages m
            WHERE m.chat_id = last.id AND m.origin = 'person'
            ORDER BY m.id DESC LIMIT 1) said ON true)
    SELECT c.id AS chat_id, c.root_chat_id, c.title, called.message_id, called.arguments,
        told.created_at,
        result ->> 'tool_call_id' AS tool_call_id, result ->> 'tool_name' AS tool_name
    FROM roots JOIN chat.chats c ON c.root_chat_id = roots.id
    JOIN chat.chat_exec e ON e.chat_id = c.id AND e.changed_at >= roots.begun_at
    JOIN chat.chat_messages told ON told.chat_id = c.id AND told.created_at >= roots.begun_at
        AND told.id > CASE WHEN c.id = roots.id THEN roots.said_id ELSE 0 END
        AND told.id >= e.next_message_id - $4
        AND told.role = 'tool' AND NOT told.is_deleted AND told.content_version = 1
        AND told.content::text LIKE '%"outcome":"unknown"%'
    CROSS JOIN LATERAL json_array_elements(told.content) result
    CROSS JOIN LATERAL (
        SELECT said.id AS message_id, call ->> 'args_json' AS arguments
        FROM chat.chat_messages said CROSS JOIN LATERAL json_array_elements(said.content) call
        WHERE said.chat_id = c.id AND said.id < told.id AND said.role = 'assistant'
            AND said.content_version = 1 AND call ->> 'type' = 'tool-call'
            AND call ->> 'tool_call_id' = result ->> 'tool_call_id'
        ORDER BY said.id DESC LIMIT 1) called
    WHERE result ->> 'type' = 'tool-result' AND result ->> 'outcome' = 'unknown'
    ORDER BY told.created_at DESC, c.id, told.id LIMIT $3
"""
ROOTS_MAX = 200
UNKNOWN_MAX = 100
MESSAGES_MAX = 1000


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

    async def list_unknown(self, owner_id: OwnerId) -> tuple[UnknownCall, ...]:
        """Return the calls in chats of a user that may have run, the newest first."""
        bounds = (ROOTS_MAX, UNKNOWN_MAX, MESSAGES_MAX)
        rows = await self._pool.fetch(SELECT_UNKNOWN, owner_id, *bounds)
        return tuple(map(_unknown_of, rows))

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


def _unknown_of(row: asyncpg.Record) -> UnknownCall:
    return UnknownCall(
        chat_id=ChatId(str(row["chat_id"])),
        root_chat_id=ChatId(str(row["root_chat_id"])),
        chat_title=row["title"],
        message_id=MessageId(row["message_id"]),
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        args_json=stored_text(row["arguments"]),
        ended_at=row["created_at"],
    )


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
