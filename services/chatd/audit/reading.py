"""Reads whole chats in batches within an open transaction, and collects unreadable rows."""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import asyncpg
import msgspec

from chatd.audit.histories import DispatchedCall, StoredChat
from chatd.audit.pairing import paired
from chatd.chats.domain.chat import ChatState, Message
from chatd.chats.store.codec import parts_from_json
from chatd.chats.store.queries import MESSAGE_COLUMNS
from chatd.chats.store.rows import message_of, queued_message_of, state_of
from chatd.chats.store.statements import STATE_COLUMNS
from chatd.content.domain.parts import ToolResult
from chatd.primitives.domain.ids import ExecutionId, MessageId

CHATS_AT_ONCE = 50

Value = TypeVar("Value")

# Used only by the auditor, which reads all rows and prints only ids.
# May run: process.
SELECT_STATES = f"SELECT {STATE_COLUMNS} FROM chat.chat_exec e ORDER BY e.chat_id"
# May run: process.
SELECT_MESSAGES = f"""
    SELECT chat_id, {MESSAGE_COLUMNS} FROM chat.chat_messages
    WHERE chat_id = ANY ($1::uuid[]) ORDER BY chat_id, id
"""
# May run: process.
SELECT_QUEUES = """
    SELECT chat_id, id, content::text AS content, created_by, created_at, choice::text AS choice,
        origin
    FROM chat.chat_queue
    WHERE chat_id = ANY ($1::uuid[]) ORDER BY chat_id, position
"""
# May run: process.
SELECT_DISPATCHES = """
    SELECT chat_id, execution_id, message_id, tool_call_id, tool_name,
        CASE WHEN result IS NOT NULL THEN '[' || result::text || ']' END AS results
    FROM chat.tool_calls WHERE chat_id = ANY ($1::uuid[]) ORDER BY chat_id, message_id, execution_id
"""
# May run: process.
SELECT_HELD_FILES = "SELECT chat_id, file_id FROM chat.chat_files WHERE chat_id = ANY ($1::uuid[])"


@dataclass(frozen=True, slots=True)
class ReadChats:
    """A batch of chats, and the ids of rows whose stored format can no longer be read.

    A chat with an unreadable row is left out: its other checks would report misleading violations.
    """

    chats: tuple[StoredChat, ...]
    unreadable: tuple[str, ...]


async def read_chats(
    connection: "asyncpg.Connection[asyncpg.Record]",
) -> AsyncIterator[ReadChats]:
    """Yield all chats of the database in batches; the connection is in a transaction."""
    rows: list[asyncpg.Record] = []
    async for row in connection.cursor(SELECT_STATES, prefetch=CHATS_AT_ONCE):
        rows.append(row)
        if len(rows) == CHATS_AT_ONCE:
            yield await _read(connection, rows)
            rows = []
    if rows:
        yield await _read(connection, rows)


async def _read(
    connection: "asyncpg.Connection[asyncpg.Record]", states: list[asyncpg.Record]
) -> ReadChats:
    chat_ids = [row["chat_id"] for row in states]
    batch = _Batch()
    for row in await connection.fetch(SELECT_MESSAGES, chat_ids):
        batch.take_message(row)
    for row in await connection.fetch(SELECT_QUEUES, chat_ids):
        batch.readable(row, f"{row['chat_id']}/{row['id']}", queued_message_of)
    for row in await connection.fetch(SELECT_DISPATCHES, chat_ids):
        batch.take_dispatch(row)
    for row in await connection.fetch(SELECT_HELD_FILES, chat_ids):
        batch.held_file_ids[str(row["chat_id"])].add(str(row["file_id"]))
    chats = [chat for row in states if (chat := batch.chat(row)) is not None]
    return ReadChats(tuple(chats), tuple(batch.unreadable))


@dataclass(slots=True)
class _Batch:
    """Rows of several chats, grouped by chat."""

    messages: dict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    dispatches: dict[str, list[DispatchedCall]] = field(default_factory=lambda: defaultdict(list))
    held_file_ids: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    unreadable: list[str] = field(default_factory=list)
    damaged: set[str] = field(default_factory=set)

    def readable(
        self, row: asyncpg.Record, named: str, read: Callable[[asyncpg.Record], Value]
    ) -> Value | None:
        """Decode a row; record it as unreadable if that fails."""
        try:
            return read(row)
        except (ValueError, msgspec.MsgspecError):
            self.unreadable.append(named)
            self.damaged.add(str(row["chat_id"]))
            return None

    def take_message(self, row: asyncpg.Record) -> None:
        message = self.readable(row, f"{row['chat_id']}/{row['id']}", message_of)
        if message is not None:
            self.messages[str(row["chat_id"])].append(message)

    def take_dispatch(self, row: asyncpg.Record) -> None:
        dispatch = self.readable(row, str(row["execution_id"]), _dispatch_of)
        if dispatch is not None:
            self.dispatches[str(row["chat_id"])].append(dispatch)

    def chat(self, row: asyncpg.Record) -> StoredChat | None:
        """Return the chat of a state row, None if the row or any row of the chat is unreadable."""
        chat_id = str(row["chat_id"])
        state: ChatState | None = self.readable(row, chat_id, state_of)
        if state is None or chat_id in self.damaged:
            return None
        messages = tuple(self.messages[chat_id])
        return StoredChat(
            state=state,
            messages=messages,
            dispatches=tuple(self.dispatches[chat_id]),
            held_file_ids=frozenset(self.held_file_ids[chat_id]),
            pairing=paired([message for message in messages if not message.is_deleted]),
        )


def _dispatch_of(row: asyncpg.Record) -> DispatchedCall:
    result: ToolResult | None = None
    if row["results"] is not None:
        (part,) = parts_from_json(row["results"])
        if not isinstance(part, ToolResult):
            raise ValueError("what is recorded for a call is no result")
        result = part
    return DispatchedCall(
        execution_id=ExecutionId(str(row["execution_id"])),
        message_id=MessageId(row["message_id"]),
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        result=result,
    )
