"""Reads changes of users' chat lists, by the transactions that made them.

The horizon of a query is the oldest transaction that was still running: no later commit has an
older one. Rows returned twice because of that are harmless, and no row of a user has to be locked
to keep an order. Only `chat_exec` has an index by its transaction; changes of titles and other
metadata are found by the rows' own xmin, among the chats that the requested users may read. A
share has an xmin too; one that was revoked leaves a row in `revoked_shares`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import asyncpg

from chatd.chats.domain.break_glass import BreakGlassAccess
from chatd.chats.domain.views import ChatView
from chatd.chats.store.access.break_glass import IS_OPEN, access_of
from chatd.chats.store.view_rows import CHATS, VIEW_COLUMNS, view_of
from chatd.primitives.domain.ids import ChatId
from chatd.primitives.domain.requests import Reader
from parley.postgres import Pool

KEPT = timedelta(days=7)

# May run: no-rows.
HORIZON = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"

# A row's xmin has 32 bits; the upper ones are those of the current xid, or one less.
ROW_XID = "(present.xid - (present.xid - {row}.xmin::text::bigint) % 4294967296)"
CHAT_XID = ROW_XID.format(row="c")
SHARE_XID = ROW_XID.format(row="share")

PRESENT = """
    present AS MATERIALIZED (
        SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xid,
            pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon)
"""

# With whom a chat is shared, and the transaction of each share.
GRANTEES = f"""
    ARRAY(SELECT share.grantee_id::text || ' ' || {SHARE_XID} FROM chat.chat_shares share
        WHERE share.chat_id = c.root_chat_id)
"""

CHANGED_COLUMNS = (
    f"{VIEW_COLUMNS}, c.created_xid::text::bigint AS created_xid, {GRANTEES} AS grantees"
)

# Chats of the users $1, and those that are shared with these users or their groups $5.
FOLLOWED = """
    (c.owner_id = ANY ($1::uuid[]) OR c.root_chat_id IN (
        SELECT share.chat_id FROM chat.chat_shares share
        WHERE share.grantee_id = ANY ($5::uuid[])))
"""

# The chats that changed in a transaction not older than $2, or were shared in one.
# May run: reader.
SELECT_CHANGES = f"""
    WITH {PRESENT}
    SELECT present.horizon, present.xid AS present_xid, changed.*
    FROM present LEFT JOIN LATERAL (
        SELECT {CHANGED_COLUMNS} FROM {CHATS}
        WHERE {FOLLOWED}
            AND (e.changed_xid >= $2::text::xid8 OR $4::boolean AND (
                {CHAT_XID} >= $2::text::bigint OR EXISTS (
                    SELECT 1 FROM chat.chat_shares share WHERE share.chat_id = c.root_chat_id
                        AND share.grantee_id = ANY ($5::uuid[])
                        AND {SHARE_XID} >= $2::text::bigint)))
        ORDER BY greatest(e.changed_xid::text::bigint, {CHAT_XID}), c.id LIMIT $3) changed ON true
"""

# Those of some chats that the users $1 may read, regardless of what changed.
# May run: reader.
SELECT_METADATA_CHANGED = f"""
    WITH {PRESENT}
    SELECT {CHANGED_COLUMNS} FROM present, {CHATS}
    WHERE c.id = ANY ($2::uuid[]) AND (c.owner_id = ANY ($1::uuid[]) OR c.root_chat_id IN (
        SELECT share.chat_id FROM chat.chat_shares share
        WHERE share.grantee_id = ANY ($3::uuid[])))
"""

# Deleted chats of users, and chats that are no longer shared with users or groups: who lost it, and
# who can still read it.
# May run: reader.
SELECT_GONE = """
    (SELECT gone.chat_id, gone.owner_id AS lost_by, gone.changed_xid, '{}'::uuid[] AS kept_by
        FROM chat.deleted_chats gone
        WHERE gone.owner_id = ANY ($1::uuid[]) AND gone.changed_xid >= $2::text::xid8
        ORDER BY gone.changed_xid, gone.chat_id LIMIT $3)
    UNION ALL
    (SELECT gone.chat_id, gone.grantee_id, gone.changed_xid, ARRAY(
            SELECT c.owner_id FROM chat.chats c WHERE c.id = gone.chat_id
            UNION ALL SELECT share.grantee_id FROM chat.chat_shares share
                WHERE share.chat_id = gone.chat_id)
        FROM chat.revoked_shares gone
        WHERE gone.grantee_id = ANY ($4::uuid[]) AND gone.changed_xid >= $2::text::xid8
        ORDER BY gone.changed_xid, gone.chat_id LIMIT $3)
"""

# Accesses to the chats of $1 that were opened or ended in a transaction not older than $2.
# May run: owner.
SELECT_ACCESSES = f"""
    SELECT access.id, access.administrator_id, access.owner_id, access.reason, access.opened_at,
        access.expires_at, access.ended_at, {IS_OPEN} AS is_open
    FROM chat.break_glass access
    WHERE access.owner_id = ANY ($1::uuid[]) AND access.changed_xid >= $2::text::xid8
    ORDER BY access.changed_xid, access.id LIMIT $3
"""

# May run: process.
FORGET_DELETED = """
    WITH revoked AS (
        DELETE FROM chat.revoked_shares WHERE revoked_at < clock_timestamp() - $1::interval)
    DELETE FROM chat.deleted_chats WHERE deleted_at < clock_timestamp() - $1::interval
"""


@dataclass(frozen=True, slots=True)
class ChangedChat:
    """A chat as it is now, and since when each of its readers has it.

    Attributes:
        view: The chat.
        readers: The owner with the transaction that created the chat; the users and groups that it
            is shared with, with the transaction of their share.
    """

    view: ChatView
    readers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class GoneChat:
    """A chat that was deleted, or is no longer shared.

    Attributes:
        chat_id: The chat.
        lost_by: The user or group that lost it.
        kept_by: The users and groups that can still read it.
        xid: The transaction in which that happened.
    """

    chat_id: ChatId
    lost_by: str
    kept_by: frozenset[str]
    xid: int


@dataclass(frozen=True, slots=True)
class FeedChanges:
    """Changes of chat lists.

    Attributes:
        horizon: Where the next query must begin.
        present: The newest possible transaction.
        chats: Chats as they are now, in the order of their changes.
        gone: Chats that readers lost.
        accesses: Break-glass accesses that were opened or ended.
    """

    horizon: int
    present: int
    chats: tuple[ChangedChat, ...]
    gone: tuple[GoneChat, ...]
    accesses: tuple[BreakGlassAccess, ...] = ()


class PostgresFeeds:
    """Changes of chat lists, in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def horizon(self) -> int:
        """Return the horizon from which a query that starts now misses no later commit."""
        horizon: int = await self._pool.fetchval(HORIZON)
        return horizon

    async def changes(
        self,
        readers: Sequence[Reader],
        since: int,
        *,
        limit: int,
        is_thorough: bool,
        metadata_changed: Collection[ChatId] = (),
    ) -> FeedChanges:
        """Return the changes of the chats that some users may read.

        Args:
            readers: The users.
            since: The horizon of an earlier query.
            limit: How many of each kind at most.
            is_thorough: Whether to find metadata changes and shares too, not only changes of the
                execution.
            metadata_changed: Chats that are returned in any case.
        """
        users = [reader.id for reader in readers]
        grantees = [*{grantee for reader in readers for grantee in (reader.id, *reader.group_ids)}]
        # Deletions first: a chat deleted in between is found by the next query.
        gone = await self._pool.fetch(SELECT_GONE, users, str(since), limit, grantees)
        accesses = await self._pool.fetch(SELECT_ACCESSES, users, str(since), limit)
        rows = await self._pool.fetch(
            SELECT_CHANGES, users, str(since), limit, is_thorough, grantees
        )
        more = (
            await self._pool.fetch(SELECT_METADATA_CHANGED, users, [*metadata_changed], grantees)
            if metadata_changed
            else []
        )
        changed = {
            row["view_id"]: _changed_chat_of(row)
            for row in (*rows, *more)
            if row["view_id"] is not None
        }
        return FeedChanges(
            rows[0]["horizon"],
            rows[0]["present_xid"],
            tuple(changed.values()),
            tuple(map(_gone_chat_of, gone)),
            tuple(map(access_of, accesses)),
        )

    async def forget(self) -> None:
        """Delete old records of deleted chats and revoked shares."""
        await self._pool.execute(FORGET_DELETED, KEPT)


def _changed_chat_of(row: asyncpg.Record) -> ChangedChat:
    view = view_of(row)
    shares = (each.split() for each in row["grantees"])
    readers = {grantee: int(xid) for grantee, xid in shares}
    return ChangedChat(view, readers | {view.owner.id: row["created_xid"]})


def _gone_chat_of(row: asyncpg.Record) -> GoneChat:
    return GoneChat(
        ChatId(str(row["chat_id"])),
        str(row["lost_by"]),
        frozenset(map(str, row["kept_by"])),
        int(row["changed_xid"]),
    )
