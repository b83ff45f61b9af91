"""Reads of one chat and its history; every statement includes the authorisation."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import asyncpg

from chatd.chats.domain.chat import Message, QueuedMessage
from chatd.chats.domain.views import ChatView
from chatd.chats.store.codec import original_text
from chatd.chats.store.queries import MESSAGE_COLUMNS
from chatd.chats.store.rows import message_of, queue_column, queue_of
from chatd.chats.store.view_rows import ASKING, CHATS, READABLE, VIEW_COLUMNS, asking_of, view_of
from chatd.content.domain.todos import Todo, todos_from_result
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, MessageId, OwnerId
from chatd.primitives.domain.requests import Reader
from parley.postgres import Pool

EXPORT_PAGE_LENGTH = 200
CHILDREN_MAX = 200
PROMPT_CHARACTERS_MAX = 8000
#: The newest messages with results in which the to-do list of a chat is looked for.
TODO_MESSAGES_MAX = 500

# One chat, for a reader.
# May run: reader.
SELECT_VIEW = f"""
    SELECT {VIEW_COLUMNS}, {ASKING} AS asking FROM {CHATS} WHERE c.id = $1 AND {READABLE}
"""

# The next children of a root, for a reader, in the order they were spawned: a parent comes before
# those that it spawned.
# May run: reader.
SELECT_CHILDREN = f"""
    SELECT {VIEW_COLUMNS} FROM {CHATS}
    WHERE c.root_chat_id = $1 AND c.id <> $1 AND {READABLE}
        AND ($4::uuid IS NULL OR (c.created_at, c.id) > (
            SELECT known.created_at, known.id FROM chat.chats known
            WHERE known.id = $4 AND known.root_chat_id = $1))
    ORDER BY c.created_at, c.id LIMIT $5
"""

# Messages that users see, between two ids.
MESSAGES_BETWEEN = f"""
    SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages
    WHERE chat_id = readable.id AND ({{before}} = 0 OR id < {{before}}) AND id > {{after}}
        AND NOT is_deleted AND visibility <> 'model'
    ORDER BY id {{order}} LIMIT $6
"""
DESCENDING = MESSAGES_BETWEEN.format(before="$4::bigint", after="$5::bigint", order="DESC")

# A page of what users see, for a reader: no row means no chat, one empty row an empty page. The
# first row has the queue, if it is requested, and the versions of the chat.
# May run: reader.
SELECT_PAGE = f"""
    WITH readable AS (
        SELECT c.id, {{queue}} AS queue, {{versions}} AS versions
        FROM {{source}} WHERE c.id = $1 AND {READABLE})
    SELECT page.*, readable.versions, CASE WHEN row_number() OVER (ORDER BY page.id {{order}}) = 1
        THEN readable.queue END AS queue
    FROM readable LEFT JOIN LATERAL ({{messages}}) page ON true
    ORDER BY page.id {{order}}
"""
WITHOUT_STATE = {"queue": "NULL::text", "versions": "NULL::bigint[]", "source": "chat.chats c"}
WITH_STATE = {
    "queue": queue_column("c.id"),
    "versions": "ARRAY[e.snapshot_version, e.history_version, e.generation_attempt]",
    "source": CHATS,
}
SELECT_PAGE_ASCENDING = SELECT_PAGE.format(
    order="ASC",
    messages=MESSAGES_BETWEEN.format(before="$4::bigint", after="$5::bigint", order="ASC"),
    **WITHOUT_STATE,
)
SELECT_PAGE_DESCENDING = SELECT_PAGE.format(order="DESC", messages=DESCENDING, **WITHOUT_STATE)
SELECT_NEWEST_PAGE = SELECT_PAGE.format(order="DESC", messages=DESCENDING, **WITH_STATE)
# As many messages before $4 as after $5, which is one less: the message between them is newer.
SELECT_PAGE_AROUND = SELECT_PAGE.format(
    order="DESC",
    messages="({}) UNION ALL ({})".format(
        MESSAGES_BETWEEN.format(before="$4::bigint", after="0", order="DESC"),
        MESSAGES_BETWEEN.format(before="0", after="$5::bigint", order="ASC"),
    ),
    **WITH_STATE,
)

# What users wrote in a chat, newest first, for a reader: no row means no chat, one without an id
# no prompts.
# May run: reader.
SELECT_PROMPTS = f"""
    WITH readable AS (SELECT c.id FROM chat.chats c WHERE c.id = $1 AND {READABLE})
    SELECT said.id, said.text FROM readable LEFT JOIN LATERAL (
        SELECT message.id,
            left(string_agg(part ->> 'text', E'\\n'), {PROMPT_CHARACTERS_MAX}) AS text
        FROM chat.chat_messages message CROSS JOIN LATERAL json_array_elements(message.content) part
        WHERE message.chat_id = readable.id AND message.role = 'user' AND NOT message.is_deleted
            AND message.visibility <> 'model' AND message.content_version = 1
            AND part ->> 'type' = 'text'
        GROUP BY message.id ORDER BY message.id DESC LIMIT $4) said ON true
    ORDER BY said.id DESC
"""

# The result of the newest call of the tool `todo`, for a reader: no row means no chat, and null no
# list.
# May run: reader.
SELECT_TODOS = f"""
    WITH readable AS (SELECT c.id FROM chat.chats c WHERE c.id = $1 AND {READABLE})
    SELECT newest.result FROM readable LEFT JOIN LATERAL (
        SELECT part.value ->> 'result_json' AS result
        FROM (SELECT m.id, m.content FROM chat.chat_messages m
            WHERE m.chat_id = readable.id AND m.role = 'tool' AND NOT m.is_deleted
                AND m.visibility <> 'model' AND m.content_version = 1
            ORDER BY m.id DESC LIMIT {TODO_MESSAGES_MAX}) message
        CROSS JOIN LATERAL json_array_elements(message.content) WITH ORDINALITY part (value, place)
        WHERE part.value ->> 'type' = 'tool-result' AND part.value ->> 'tool_name' = 'todo'
            AND part.value ->> 'outcome' = 'done' AND part.value ->> 'mcp_server_id' IS NULL
        ORDER BY message.id DESC, part.place DESC LIMIT 1) newest ON true
"""

# The messages that one change deleted, for the owner.
# May run: owner.
SELECT_DELETED = """
    SELECT message.id FROM chat.chats c JOIN chat.chat_messages message ON message.chat_id = c.id
    WHERE c.id = $1 AND c.owner_id = $2 AND message.revision = $3
        AND message.is_deleted AND message.visibility <> 'model'
    ORDER BY message.id
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range of a history; 0 means no bound.

    It is listed newest first, or oldest first when only `after_id` bounds it.
    """

    before_id: int
    after_id: int
    limit: int
    around_id: int = 0

    @property
    def is_ascending(self) -> bool:
        """Return whether the oldest come first."""
        return self.after_id > 0 and self.before_id == 0

    @property
    def is_unbounded(self) -> bool:
        """Return whether this is the page that includes the queue."""
        return self.after_id == 0 and self.before_id == 0 and self.around_id == 0


@dataclass(frozen=True, slots=True)
class PageVersions:
    """The versions of a chat to which a page belongs."""

    snapshot: int
    history: int
    generation_attempt: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a history, with queue and versions if it is unbounded or around a message."""

    messages: tuple[Message, ...]
    has_more: bool
    queue: tuple[QueuedMessage, ...] = ()
    versions: PageVersions | None = None
    has_newer: bool = False


class Reading:
    """Chats as their readers may see them."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def get(self, chat_id: ChatId, reader: Reader) -> ChatView:
        """Return one chat, with the calls that its client is asked to execute.

        Raises:
            ChatNotFound: There is none for this reader.
        """
        row = await self._pool.fetchrow(SELECT_VIEW, chat_id, reader.id, reader.group_ids)
        if row is None:
            raise ChatNotFound(chat_id)
        view = view_of(row)
        return replace(view, asking=asking_of(view.state, row["asking"]))

    async def children(
        self, chat_id: ChatId, reader: Reader, after: str = ""
    ) -> tuple[tuple[ChatView, ...], bool]:
        """Return the next children of a root as they were spawned, and whether there are more."""
        rows = await self._pool.fetch(
            SELECT_CHILDREN, chat_id, reader.id, reader.group_ids, after or None, CHILDREN_MAX + 1
        )
        return tuple(map(view_of, rows[:CHILDREN_MAX])), len(rows) > CHILDREN_MAX

    async def page(self, chat_id: ChatId, reader: Reader, bounds: Bounds) -> Page:
        """Return a page of the history.

        Raises:
            ChatNotFound: There is no such chat for this reader.
        """
        if bounds.around_id:
            return await self._page_around(chat_id, reader, bounds)
        statement = SELECT_PAGE_ASCENDING if bounds.is_ascending else SELECT_PAGE_DESCENDING
        if bounds.is_unbounded:
            statement = SELECT_NEWEST_PAGE
        rows = await self._rows(statement, chat_id, reader, bounds)
        messages = _messages_of(rows)
        return Page(
            messages[: bounds.limit],
            has_more=len(messages) > bounds.limit,
            queue=queue_of(rows[0]["queue"]),
            versions=_versions_of(rows[0]),
        )

    async def _page_around(self, chat_id: ChatId, reader: Reader, bounds: Bounds) -> Page:
        """Return the messages nearest to an id, as many on both sides as there are."""
        sides = Bounds(bounds.around_id, bounds.around_id - 1, bounds.limit)
        rows = await self._rows(SELECT_PAGE_AROUND, chat_id, reader, sides)
        messages = _messages_of(rows)
        newer = sum(message.id >= bounds.around_id for message in messages)
        older = len(messages) - newer
        newer_kept = min(newer, max((bounds.limit + 1) // 2, bounds.limit - older))
        older_kept = min(older, bounds.limit - newer_kept)
        return Page(
            messages[newer - newer_kept : newer + older_kept],
            has_more=older > older_kept,
            queue=queue_of(rows[0]["queue"]),
            versions=_versions_of(rows[0]),
            has_newer=newer > newer_kept,
        )

    async def messages(self, chat_id: ChatId, reader: Reader) -> AsyncIterator[Message]:
        """Yield the whole history in order, a page at a time.

        Raises:
            ChatNotFound: There is no such chat for this reader, or no longer.
        """
        after_id = 0
        while True:
            bounds = Bounds(before_id=0, after_id=after_id, limit=EXPORT_PAGE_LENGTH)
            messages = _messages_of(
                await self._rows(SELECT_PAGE_ASCENDING, chat_id, reader, bounds)
            )
            for message in messages[:EXPORT_PAGE_LENGTH]:
                yield message
                after_id = message.id
            if len(messages) <= EXPORT_PAGE_LENGTH:
                return

    async def prompts(
        self, chat_id: ChatId, reader: Reader, limit: int
    ) -> tuple[tuple[MessageId, str], ...]:
        """Return the ids and texts of what users wrote, newest first.

        Raises:
            ChatNotFound: There is no such chat for this reader.
        """
        who = (reader.id, reader.group_ids)
        rows = await self._pool.fetch(SELECT_PROMPTS, chat_id, *who, limit)
        if not rows:
            raise ChatNotFound(chat_id)
        return tuple(
            (MessageId(row["id"]), original_text(row["text"]))
            for row in rows
            if row["id"] is not None
        )

    async def todos(self, chat_id: ChatId, reader: Reader) -> tuple[Todo, ...]:
        """Return the to-do list of a chat.

        Raises:
            ChatNotFound: There is no such chat for this reader.
        """
        row = await self._pool.fetchrow(SELECT_TODOS, chat_id, reader.id, reader.group_ids)
        if row is None:
            raise ChatNotFound(chat_id)
        return () if row["result"] is None else todos_from_result(original_text(row["result"]))

    async def deleted_at(
        self, chat_id: ChatId, *, owner_id: OwnerId, snapshot_version: int
    ) -> tuple[MessageId, ...]:
        """Return which messages the change with that version deleted."""
        rows = await self._pool.fetch(SELECT_DELETED, chat_id, owner_id, snapshot_version)
        return tuple(MessageId(row["id"]) for row in rows)

    # May run: reader.
    async def _rows(
        self, statement: str, chat_id: ChatId, reader: Reader, bounds: Bounds
    ) -> list[asyncpg.Record]:
        """Return the requested rows and one more if there is one."""
        who = (reader.id, reader.group_ids)
        which = (bounds.before_id, bounds.after_id, bounds.limit + 1)
        rows = await self._pool.fetch(statement, chat_id, *who, *which)
        if not rows:
            raise ChatNotFound(chat_id)
        return rows


def _messages_of(rows: list[asyncpg.Record]) -> tuple[Message, ...]:
    return tuple(message_of(row) for row in rows if row["id"] is not None)


def _versions_of(row: asyncpg.Record) -> PageVersions | None:
    return None if row["versions"] is None else PageVersions(*row["versions"])
