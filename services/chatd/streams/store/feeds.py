"""Reads changes of users' chat lists, by the transactions that made them.

The horizon of a query is the oldest transaction that was still running: no later commit has an
older one. Rows returned twice because of that are harmless, and no row of a user has to be locked
to keep an order. Only `chat_exec` has an index by its transaction; changes of titles and other
metadata are found by the rows' own xmin, among the chats of the requested users.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from chatd.chats.domain.break_glass import BreakGlassAccess
from chatd.chats.domain.views import ChatView
from chatd.chats.store.break_glass import IS_OPEN, access_of
from chatd.chats.store.view_rows import CHATS, VIEW_COLUMNS, view_of
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import Pool

KEPT = timedelta(days=7)

# May run: no-rows.
HORIZON = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"

# A row's xmin has 32 bits; the upper ones are those of the current xid, or one less.
ROW_XID = """
    (present.xid - (present.xid - c.xmin::text::bigint) % 4294967296)
"""

CREATED_XID = "c.created_xid::text::bigint AS created_xid"

# The chats of $1 that changed in a transaction not older than $2.
# May run: owner.
SELECT_CHANGES = f"""
    WITH present AS MATERIALIZED (
        SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xid,
            pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon)
    SELECT present.horizon, present.xid AS present_xid, changed.*
    FROM present LEFT JOIN LATERAL (
        SELECT {VIEW_COLUMNS}, {CREATED_XID}, {ROW_XID} AS row_xid FROM {CHATS}
        WHERE c.owner_id = ANY ($1::uuid[])
            AND (e.changed_xid >= $2::text::xid8 OR $4::boolean AND {ROW_XID} >= $2::text::bigint)
        ORDER BY greatest(e.changed_xid::text::bigint, {ROW_XID}), c.id LIMIT $3) changed ON true
"""

# Those of some chats that belong to $1, regardless of what changed.
# May run: owner.
SELECT_METADATA_CHANGED = f"""
    SELECT {VIEW_COLUMNS}, {CREATED_XID} FROM {CHATS}
    WHERE c.id = ANY ($2::uuid[]) AND c.owner_id = ANY ($1::uuid[])
"""

# May run: owner.
SELECT_DELETED = """
    SELECT chat_id, owner_id FROM chat.deleted_chats
    WHERE owner_id = ANY ($1::uuid[]) AND changed_xid >= $2::text::xid8
    ORDER BY changed_xid, chat_id LIMIT $3
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
FORGET_DELETED = (
    "DELETE FROM chat.deleted_chats WHERE deleted_at < clock_timestamp() - $1::interval"
)


@dataclass(frozen=True, slots=True)
class ChangedChat:
    """A chat as it is now, and the transaction that created it."""

    view: ChatView
    created_xid: int


@dataclass(frozen=True, slots=True)
class FeedChanges:
    """Changes of chat lists.

    Attributes:
        horizon: Where the next query must begin.
        present: The newest possible transaction.
        chats: Chats as they are now, in the order of their changes.
        deleted: Deleted chats, with their owners.
        accesses: Break-glass accesses that were opened or ended.
    """

    horizon: int
    present: int
    chats: tuple[ChangedChat, ...]
    deleted: tuple[tuple[ChatId, OwnerId], ...]
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
        owners: Sequence[OwnerId],
        since: int,
        *,
        limit: int,
        is_thorough: bool,
        metadata_changed: Collection[ChatId] = (),
    ) -> FeedChanges:
        """Return the changes of the chats of some users.

        Args:
            owners: The users.
            since: The horizon of an earlier query.
            limit: How many of each kind at most.
            is_thorough: Whether to find metadata changes too, not only those of the execution.
            metadata_changed: Chats that are returned in any case.
        """
        # Deletions first: a chat deleted in between is found by the next query.
        gone = await self._pool.fetch(SELECT_DELETED, owners, str(since), limit)
        accesses = await self._pool.fetch(SELECT_ACCESSES, owners, str(since), limit)
        rows = await self._pool.fetch(SELECT_CHANGES, owners, str(since), limit, is_thorough)
        more = (
            await self._pool.fetch(SELECT_METADATA_CHANGED, owners, [*metadata_changed])
            if metadata_changed
            else []
        )
        changed = {
            row["view_id"]: ChangedChat(view_of(row), row["created_xid"])
            for row in (*rows, *more)
            if row["view_id"] is not None
        }
        return FeedChanges(
            rows[0]["horizon"],
            rows[0]["present_xid"],
            tuple(changed.values()),
            tuple((ChatId(str(row["chat_id"])), OwnerId(str(row["owner_id"]))) for row in gone),
            tuple(map(access_of, accesses)),
        )

    async def forget(self) -> None:
        """Delete old records of deleted chats."""
        await self._pool.execute(FORGET_DELETED, KEPT)
