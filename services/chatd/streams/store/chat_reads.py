"""Reads chats for their subscribers: permission and changes since a version, in one statement.

Each read is one statement and so one snapshot, for one chat or for many: no message can be newer
than the state it comes with.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from chatd.chats.domain.chat import ChatState, Message, QueuedMessage
from chatd.chats.domain.views import EndedAction, OpenAction
from chatd.chats.store.access.break_glass import IS_OPEN
from chatd.chats.store.queries import MESSAGE_COLUMNS
from chatd.chats.store.rows import message_of, queue_column, queue_of, state_of
from chatd.chats.store.statements import STATE_COLUMNS
from chatd.chats.store.view_rows import (
    ASKING,
    ENDED_ACTIONS,
    PLACE_IN_LINE,
    asking_of,
    ended_actions_of,
)
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import Reader
from parley.postgres import Pool

# Chats, each for a reader that may read it or for this process itself, with the newest of the
# messages that changed after a version, and on request the version of the last deletion. Deleted
# messages matter only to a reader that had them, never to a reader from the beginning. The LIMIT 1
# keeps the planner, whose statistics may be from empty tables, from scanning them whole.
# May run: reader, process.
SELECT_FOLLOWED = f"""
    SELECT asked.place, c.owner_id, {STATE_COLUMNS}, {PLACE_IN_LINE} AS place_in_line,
        CASE WHEN e.queue_length > 0 THEN {queue_column("e.chat_id")} END AS queue,
        {ASKING} AS asking, {ENDED_ACTIONS} AS ended,
        CASE WHEN asked.with_deletions THEN (
            SELECT max(gone.revision) FROM chat.chat_messages gone
            WHERE gone.chat_id = e.chat_id AND gone.is_deleted AND gone.visibility <> 'model')
        END AS deleted_version,
        changed.*
    FROM unnest($1::uuid[], $2::bigint[], $3::int[], $4::boolean[], $5::uuid[]) WITH ORDINALITY
        AS asked (chat_id, after, most, with_deletions, reader_id, place)
    JOIN LATERAL (SELECT * FROM chat.chat_exec WHERE chat_id = asked.chat_id LIMIT 1) e ON true
    JOIN LATERAL (SELECT owner_id, root_chat_id FROM chat.chats WHERE id = asked.chat_id LIMIT 1) c
        ON true
    LEFT JOIN LATERAL (
        SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages m
        WHERE m.chat_id = e.chat_id AND m.revision > asked.after AND m.visibility <> 'model'
            AND (NOT m.is_deleted OR asked.after > 0)
        ORDER BY m.id DESC LIMIT asked.most) changed ON true
    WHERE asked.reader_id IS NULL OR c.owner_id = asked.reader_id OR EXISTS (
        SELECT 1 FROM chat.chat_shares share
        WHERE share.chat_id = c.root_chat_id
            AND (share.grantee_kind = 'user' AND share.grantee_id = asked.reader_id
                OR share.grantee_kind = 'group' AND EXISTS (
                    SELECT 1 FROM unnest($6::bigint[], $7::uuid[]) AS member (place, group_id)
                    WHERE member.place = asked.place AND member.group_id = share.grantee_id)))
        OR EXISTS (SELECT 1 FROM chat.break_glass access
            WHERE access.owner_id = c.owner_id AND access.administrator_id = asked.reader_id
                AND {IS_OPEN})
    ORDER BY asked.place, changed.id
"""

# Live messages with a larger id that changed after $3, as of version $4.
# May run: checked by SELECT_FOLLOWED.
SELECT_PAGE = f"""
    SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages
    WHERE chat_id = $1 AND id > $2 AND revision > $3 AND revision <= $4
        AND visibility <> 'model' AND NOT is_deleted
    ORDER BY id LIMIT $5
"""

# The versions of followed chats; deleted ones are missing.
# May run: process.
SELECT_VERSIONS = """
    SELECT chat_id, snapshot_version FROM chat.chat_exec WHERE chat_id = ANY ($1::uuid[])
"""

# Which of several readers may still read the chat that each of them follows.
# May run: reader.
SELECT_STILL_READABLE = f"""
    SELECT asked.place FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY
        AS asked (chat_id, reader_id, place)
    JOIN chat.chats c ON c.id = asked.chat_id
    WHERE c.owner_id = asked.reader_id OR EXISTS (
        SELECT 1 FROM chat.chat_shares share
        JOIN unnest($3::bigint[], $4::uuid[]) AS member (place, grantee_id)
            ON member.place = asked.place AND member.grantee_id = share.grantee_id
        WHERE share.chat_id = c.root_chat_id)
        OR EXISTS (SELECT 1 FROM chat.break_glass access
            WHERE access.owner_id = c.owner_id AND access.administrator_id = asked.reader_id
                AND {IS_OPEN})
"""


@dataclass(frozen=True, slots=True)
class ChatReadRequest:
    """A request to read one chat.

    Attributes:
        chat_id: The chat.
        after: The version after which changes are wanted.
        limit: How many of the newest changed messages; 0 for none.
        with_deletions: Whether to read the version of the last deletion.
        reader: The reader; None for this process, which may read everything.
    """

    chat_id: ChatId
    after: int = 0
    limit: int = 0
    with_deletions: bool = False
    reader: Reader | None = None


@dataclass(frozen=True, slots=True)
class FollowedChat:
    """A chat as its subscribers need it, at one version.

    Attributes:
        owner_id: The owner of the chat.
        messages: Those that changed, in order; deleted ones are marked.
        is_complete: Whether these are all; else older ones are missing.
        deleted_version: The version of the last deletion; None if it was not requested.
        asking: What it waits for from a client or a person.
        ended: How the newest of its actions ended, in that order.
    """

    owner_id: OwnerId
    state: ChatState
    place_in_line: int
    queue: tuple[QueuedMessage, ...]
    asking: tuple[OpenAction, ...]
    messages: tuple[Message, ...]
    is_complete: bool
    deleted_version: int | None = None
    ended: tuple[EndedAction, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatReader:
    """One reader of one chat."""

    chat_id: ChatId
    reader: Reader


class PostgresStreamReads:
    """The reads of streams, in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, asked: Sequence[ChatReadRequest]) -> tuple[FollowedChat | None, ...]:
        """Return the requested chats; None for one that is gone or that the reader may not read."""
        members = [
            (place, group_id)
            for place, each in enumerate(asked, 1)
            for group_id in (each.reader.group_ids if each.reader is not None else ())
        ]
        rows = await self._pool.fetch(
            SELECT_FOLLOWED,
            [each.chat_id for each in asked],
            [each.after for each in asked],
            # One more than requested shows whether there are more.
            [each.limit + 1 if each.limit else 0 for each in asked],
            [each.with_deletions for each in asked],
            [None if each.reader is None else each.reader.id for each in asked],
            [place for place, _ in members],
            [group_id for _, group_id in members],
        )
        found: dict[int, list[asyncpg.Record]] = {}
        for row in rows:
            found.setdefault(row["place"], []).append(row)
        return tuple(
            _followed_chat_of(each, found[place]) if place in found else None
            for place, each in enumerate(asked, 1)
        )

    async def read_page(
        self, chat_id: ChatId, *, behind_id: int, after: int, upto: int, limit: int
    ) -> tuple[Message, ...]:
        """Return the next live messages with a larger id that changed after a version."""
        rows = await self._pool.fetch(SELECT_PAGE, chat_id, behind_id, after, upto, limit)
        return tuple(map(message_of, rows))

    async def versions(self, chat_ids: Sequence[ChatId]) -> dict[ChatId, int]:
        """Return the current versions of those chats that exist."""
        rows = await self._pool.fetch(SELECT_VERSIONS, chat_ids)
        return {ChatId(str(row["chat_id"])): row["snapshot_version"] for row in rows}

    async def still_readable(self, asked: Sequence[ChatReader]) -> frozenset[ChatReader]:
        """Return those readers that may still read."""
        members = [
            (place, grantee)
            for place, each in enumerate(asked, 1)
            for grantee in (each.reader.id, *each.reader.group_ids)
        ]
        rows = await self._pool.fetch(
            SELECT_STILL_READABLE,
            [each.chat_id for each in asked],
            [each.reader.id for each in asked],
            [place for place, _ in members],
            [grantee for _, grantee in members],
        )
        return frozenset(asked[row["place"] - 1] for row in rows)


def _followed_chat_of(asked: ChatReadRequest, rows: list[asyncpg.Record]) -> FollowedChat:
    first = rows[0]
    state = state_of(first)
    messages = tuple(message_of(row) for row in rows if row["id"] is not None)
    return FollowedChat(
        OwnerId(str(first["owner_id"])),
        state,
        first["place_in_line"],
        queue_of(first["queue"]),
        asking_of(state, first["asking"]),
        messages[-asked.limit :] if asked.limit else (),
        is_complete=len(messages) <= asked.limit,
        deleted_version=(first["deleted_version"] or 0) if asked.with_deletions else None,
        ended=ended_actions_of(first["ended"]),
    )
