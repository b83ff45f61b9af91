"""Ageing chat trees in PostgreSQL, the notices to their owners, and counts of what was done.

The statements have no authorisation: they run for the process, and for administrators, who see ids
and times and nothing of what the chats say.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import asyncpg

from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.retention.domain.retention import AgeingTree, DueStep, Ending, Notice, Step
from parley.postgres import Pool

COUNTS_KEPT = timedelta(days=366)

# One process at a time; the others do not wait.
# May run: no-rows.
TRY_TO_BEGIN = "SELECT pg_try_advisory_xact_lock(hashtextextended('chat retention', 0))"

# Root chats in the order of their ids: those with a notice, and those that are old enough for one.
# May run: process, administrator.
SELECT_TREES = """
    SELECT page.*, tree.changed_at, tree.is_kept, clock_timestamp() AS now
    FROM (
        SELECT c.id, c.owner_id, c.pin_order, c.archives_at, c.purges_at, c.retention_noticed_at,
            e.archived
        FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
        WHERE c.parent_chat_id IS NULL AND c.id > $1
            AND (c.retention_noticed_at IS NOT NULL
                OR e.changed_at <= clock_timestamp() - $2::interval)
        ORDER BY c.id LIMIT $3) AS page
    JOIN LATERAL (
        SELECT max(e.changed_at) AS changed_at,
            page.pin_order > 0 OR bool_or(e.status NOT IN ('waiting', 'error')) AS is_kept
        FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
        WHERE c.root_chat_id = page.id) AS tree ON true
    ORDER BY page.id
"""

# Notices to the owners of some trees that still have the change that they were judged by.
# May run: process.
GIVE_NOTICES = """
    WITH given AS (
        UPDATE chat.chats c SET archives_at = new.archives_at, purges_at = new.purges_at,
            retention_noticed_at = clock_timestamp()
        FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[])
            AS new (id, archives_at, purges_at)
        WHERE c.id = new.id RETURNING c.id),
    counted AS (
        INSERT INTO chat.retention_counts AS counts (day, noticed)
        SELECT current_date, count(*) FROM given HAVING count(*) > 0
        ON CONFLICT (day) DO UPDATE SET noticed = counts.noticed + excluded.noticed)
    SELECT id FROM given ORDER BY id
"""

# May run: process.
WITHDRAW_NOTICES = """
    WITH withdrawn AS (
        UPDATE chat.chats c SET archives_at = NULL, purges_at = NULL, retention_noticed_at = NULL
        WHERE c.id = ANY ($1::uuid[]) AND c.retention_noticed_at IS NOT NULL RETURNING c.id),
    counted AS (
        INSERT INTO chat.retention_counts AS counts (day, withdrawn)
        SELECT current_date, count(*) FROM withdrawn HAVING count(*) > 0
        ON CONFLICT (day) DO UPDATE SET withdrawn = counts.withdrawn + excluded.withdrawn)
    SELECT id FROM withdrawn ORDER BY id
"""

# May run: process, administrator.
SELECT_COUNTS = """
    SELECT day, noticed, withdrawn, archived, purged FROM chat.retention_counts
    ORDER BY day DESC LIMIT $1
"""

# May run: process.
DELETE_COUNTS = "DELETE FROM chat.retention_counts WHERE day < current_date - $1::interval"


@dataclass(frozen=True, slots=True)
class DayCounts:
    """How many trees each thing happened to on a day."""

    day: date
    noticed: int
    withdrawn: int
    archived: int
    purged: int


@dataclass(frozen=True, slots=True)
class Page:
    """Some trees, in the order of their ids, and the time of the database."""

    trees: tuple[AgeingTree, ...]
    now: datetime | None


class PostgresRetention:
    """Ageing trees in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[bool]:
        """Yield whether no other process works on retention, and exclude them meanwhile."""
        async with self._pool.acquire() as connection, connection.transaction():
            yield await connection.fetchval(TRY_TO_BEGIN)

    async def trees(self, after: ChatId, age_min: timedelta, trees_max: int) -> Page:
        """Return the next trees with a notice or of an age, behind the root `after`."""
        rows = await self._pool.fetch(SELECT_TREES, after, age_min, trees_max)
        return Page(tuple(map(_tree_of, rows)), rows[0]["now"] if rows else None)

    async def give_notices(self, steps: Sequence[DueStep]) -> tuple[ChatId, ...]:
        """Store notices; return the trees whose owners are to be told."""
        rows = await self._pool.fetch(
            GIVE_NOTICES,
            [due.tree.root_chat_id for due in steps],
            [due.at if due.step is Step.NOTICE_ARCHIVE else None for due in steps],
            [due.at if due.step is Step.NOTICE_PURGE else None for due in steps],
        )
        return _ids(rows)

    async def withdraw(self, steps: Sequence[DueStep]) -> tuple[ChatId, ...]:
        """Remove the notices of trees; return those whose owners are to be told."""
        return _ids(
            await self._pool.fetch(WITHDRAW_NOTICES, [due.tree.root_chat_id for due in steps])
        )

    async def counts(self, days_max: int) -> tuple[DayCounts, ...]:
        """Return the counts of the last days on which something happened."""
        rows = await self._pool.fetch(SELECT_COUNTS, days_max)
        return tuple(DayCounts(**dict(row)) for row in rows)

    async def forget_counts(self) -> None:
        """Delete counts that are too old to be shown."""
        await self._pool.execute(DELETE_COUNTS, COUNTS_KEPT)


def _tree_of(row: asyncpg.Record) -> AgeingTree:
    return AgeingTree(
        ChatId(str(row["id"])),
        OwnerId(str(row["owner_id"])),
        is_archived=row["archived"],
        is_kept=row["is_kept"],
        changed_at=row["changed_at"],
        notice=_notice_of(row),
    )


def _notice_of(row: asyncpg.Record) -> Notice | None:
    if row["retention_noticed_at"] is None:
        return None
    if row["archives_at"] is not None:
        return Notice(Ending.ARCHIVE, row["archives_at"], row["retention_noticed_at"])
    return Notice(Ending.PURGE, row["purges_at"], row["retention_noticed_at"])


def _ids(rows: Sequence[asyncpg.Record]) -> tuple[ChatId, ...]:
    return tuple(ChatId(str(row["id"])) for row in rows)
