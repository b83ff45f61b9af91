"""The store of chats: reads them for those who may, and executes decisions."""

from collections.abc import Callable
from dataclasses import dataclass

import asyncpg

from chatd.domain.chat import (
    Chat,
    ChatId,
    ChatState,
    Message,
    MessageId,
    NewMessage,
    OwnerId,
    Role,
    Status,
    WorkerId,
)
from chatd.domain.commands import Command
from chatd.domain.errors import ChatNotFound, InvalidRequest
from chatd.domain.transitions import decide
from chatd.store.codec import error_from_json, parts_from_json, parts_to_json
from chatd.store.statements import (
    INSERT_CHAT,
    SELECT_STATE,
    STATE_COLUMNS,
    decision_statement,
)

SELECT_CHAT = f"""
    SELECT c.owner_id, c.title, c.created_at, {STATE_COLUMNS}
    FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
    WHERE c.id = $1 AND c.owner_id = $2
"""

SELECT_HISTORY = """
    SELECT id, revision, role, content::text AS content, created_by, created_at
    FROM chat.chat_messages WHERE chat_id = $1 AND revision > $2 ORDER BY id
"""

SELECT_PAGE = """
    SELECT id, revision, role, content::text AS content, created_by, created_at
    FROM chat.chat_messages
    WHERE chat_id = $1 AND ($2 = 0 OR id < $2) AND id > $3
    ORDER BY id {order} LIMIT $4
"""

PAGE_LENGTH = 50
PAGE_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of a history."""

    messages: tuple[Message, ...]
    has_more: bool


class PostgresChats:
    """Chats in PostgreSQL.

    `moved` is told every state that was written, after its commit.
    """

    def __init__(self, pool: asyncpg.Pool, moved: Callable[[ChatState], None]) -> None:
        self._pool = pool
        self._moved = moved

    async def create(
        self,
        chat_id: ChatId,
        *,
        owner_id: OwnerId,
        title: str,
        message: NewMessage,
        claimed_by: WorkerId | None,
    ) -> bool:
        """Create a running chat with its first message; return whether it is new."""
        has_owner = int(claimed_by is not None)
        state = ChatState(
            chat_id=chat_id,
            status=Status.RUNNING,
            snapshot_version=1,
            history_version=1,
            generation_attempt=has_owner,
            next_message_id=MessageId(2),
            owner_epoch=has_owner,
            worker_id=claimed_by,
        )
        created = await self._pool.fetchval(
            INSERT_CHAT,
            chat_id,
            owner_id,
            title,
            state.status,
            state.snapshot_version,
            state.history_version,
            state.generation_attempt,
            state.next_message_id,
            state.owner_epoch,
            claimed_by,
            parts_to_json(message.content),
            message.created_by,
        )
        if created is not None:
            self._moved(state)
        return created is not None

    async def get(self, chat_id: ChatId, *, reader_id: OwnerId) -> Chat:
        """Return a chat that `reader_id` may read.

        Raises:
            ChatNotFound: there is none for this reader.
        """
        row = await self._pool.fetchrow(SELECT_CHAT, chat_id, reader_id)
        if row is None:
            raise ChatNotFound(chat_id)
        return Chat(
            state=_state(row),
            owner_id=OwnerId(str(row["owner_id"])),
            title=row["title"],
            created_at=row["created_at"],
            updated_at=row["changed_at"],
        )

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Decide on the present state and write; start again when somebody else moved the chat.

        Raises:
            ChatNotFound: the chat does not exist.
            TransitionNotAllowed: `command` is not legal in its status.
            FenceLost: `command` comes from a worker that no longer owns this episode.
        """
        while True:
            seen = await self.state(chat_id)
            decision = decide(seen, command)
            statement = decision_statement(seen.snapshot_version, decision)
            if await self._pool.fetchrow(statement.text, *statement.arguments) is not None:
                self._moved(decision.state)
                return decision.state

    async def state(self, chat_id: ChatId) -> ChatState:
        """Return the present state of a chat's execution.

        Raises:
            ChatNotFound: the chat does not exist.
        """
        row = await self._pool.fetchrow(SELECT_STATE, chat_id)
        if row is None:
            raise ChatNotFound(chat_id)
        return _state(row)

    async def history(self, chat_id: ChatId, after_revision: int = 0) -> tuple[Message, ...]:
        """Return the messages that changed after `after_revision`, in order."""
        rows = await self._pool.fetch(SELECT_HISTORY, chat_id, after_revision)
        return tuple(map(_message, rows))

    async def page(self, chat_id: ChatId, *, before_id: int, after_id: int, limit: int) -> Page:
        """Return a page: newest first, or oldest first when only `after_id` bounds it.

        Raises:
            InvalidRequest: the bounds or the limit make no sense.
        """
        if not 0 <= limit <= PAGE_LENGTH_MAX:
            raise InvalidRequest("limit", f"is not between 1 and {PAGE_LENGTH_MAX}")
        if before_id and after_id >= before_id:
            raise InvalidRequest("after_id", "is not below before_id")
        length = limit or PAGE_LENGTH
        statement = SELECT_PAGE.format(order="ASC" if after_id and not before_id else "DESC")
        rows = await self._pool.fetch(statement, chat_id, before_id, after_id, length + 1)
        return Page(tuple(map(_message, rows[:length])), has_more=len(rows) > length)


def _message(row: asyncpg.Record) -> Message:
    return Message(
        id=MessageId(row["id"]),
        revision=row["revision"],
        role=Role(row["role"]),
        content=parts_from_json(row["content"]),
        created_by=row["created_by"],
        created_at=row["created_at"],
    )


def _state(row: asyncpg.Record) -> ChatState:
    worker_id = row["worker_id"]
    return ChatState(
        chat_id=ChatId(str(row["chat_id"])),
        status=Status(row["status"]),
        snapshot_version=row["snapshot_version"],
        history_version=row["history_version"],
        generation_attempt=row["generation_attempt"],
        next_message_id=MessageId(row["next_message_id"]),
        owner_epoch=row["owner_epoch"],
        worker_id=None if worker_id is None else WorkerId(str(worker_id)),
        last_error=error_from_json(row["last_error"]),
    )
