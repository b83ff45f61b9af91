"""Monitors in PostgreSQL: chats make them, and one process at a time looks at each."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from chatd.chats.store.owner_claims import hold_claim
from chatd.monitors.domain.monitor import (
    KEPT_FOR,
    OPEN_MAX,
    OWNER_OPEN_MAX,
    PER_DAY_MAX,
    Monitor,
    MonitorCause,
    MonitorRefused,
    MonitorState,
    WatchingChat,
)
from chatd.primitives.domain.errors import ResourceNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerClaim, OwnerId
from parley.postgres import Pool

RESOURCE = "monitor"
LISTED_MAX = 200

_COLUMNS = """m.id, m.chat_id, m.owner_id, m.owner_role, m.process_id, m.command, m.pattern, m.note,
    m.cursor, m.state, m.cause, m.detail, m.reason, m.created_at, m.expires_at"""

# May run: owner.
SELECT_MONITORS = f"""
    SELECT {_COLUMNS} FROM chat.monitors m WHERE m.chat_id = $1 AND m.owner_id = $2
    ORDER BY m.created_at DESC, m.id LIMIT $3
"""

# May run: owner.
LOCK_MONITOR = f"""
    SELECT {_COLUMNS} FROM chat.monitors m
    WHERE m.chat_id = $1 AND m.owner_id = $2 AND m.id = $3 FOR UPDATE
"""

# May run: checked by LOCK_MONITOR.
CHANGE_STATE = "UPDATE chat.monitors SET state = $2, reason = $3 WHERE id = $1"

# The monitors of a user are counted before one is added.
# May run: no-rows.
LOCK_OWNER = "SELECT pg_advisory_xact_lock(hashtextextended('monitors ' || $1, 0))"

# May run: owner.
DELETE_OLD = """
    DELETE FROM chat.monitors WHERE chat_id = $1 AND owner_id = $2
        AND state IN ('woken', 'ended') AND created_at < clock_timestamp() - $3::interval
"""

# May run: owner.
COUNT_MONITORS = """
    SELECT count(*) FILTER (WHERE state IN ('waiting', 'due')) AS open_count,
        count(*) FILTER (WHERE created_at > clock_timestamp() - interval '1 day') AS day_count,
        count(*) FILTER (WHERE id = $3) AS same_count
    FROM chat.monitors WHERE chat_id = $1 AND owner_id = $2
"""

# May run: owner.
SELECT_IS_STORED = """
    SELECT EXISTS (SELECT 1 FROM chat.monitors WHERE chat_id = $1 AND owner_id = $2 AND id = $3)
"""

# May run: owner.
COUNT_OF_OWNER = """
    SELECT count(*) FROM chat.monitors WHERE owner_id = $1 AND state IN ('waiting', 'due')
"""

# Only root chats of the owner have monitors.
# May run: owner.
INSERT_MONITOR = """
    INSERT INTO chat.monitors (id, chat_id, owner_id, owner_role, process_id, command, pattern,
        note, cursor, state, cause, detail, reason, created_at, expires_at)
    SELECT $3, c.id, $2, $4, $5, $6, $7, $8, $9, 'waiting', '', '', '', $10, $11
    FROM chat.chats c WHERE c.id = $1 AND c.owner_id = $2 AND c.parent_chat_id IS NULL
    RETURNING id
"""

_IS_CLAIMABLE = """o.state IN ('waiting', 'due')
            AND (o.claimed_until IS NULL OR o.claimed_until < clock_timestamp())
            AND (o.state = 'waiting' OR (e.status IN ('waiting', 'error') AND e.queue_length = 0))
            AND NOT EXISTS (SELECT 1 FROM chat.suspended_users b WHERE b.user_id = o.owner_id)"""

# Monitors that no process claimed: those that wait, and those that are due and whose chat is at
# rest; none of suspended users. Of every user one comes first, then the second ones.
# May run: process.
CLAIM = f"""
    WITH ranked AS (
        SELECT o.id, row_number() OVER (
            PARTITION BY o.owner_id ORDER BY o.claimed_until NULLS FIRST) AS place
        FROM chat.monitors o JOIN chat.chat_exec e ON e.chat_id = o.chat_id
        WHERE {_IS_CLAIMABLE}),
    chosen AS (
        SELECT o.id, e.archived, e.history_version,
            e.status = 'waiting' AND e.queue_length = 0 AND coalesce((
            SELECT h.role IN ('user', 'tool') OR h.finish_reason = 'interrupted'
            FROM chat.chat_messages h WHERE h.chat_id = o.chat_id AND NOT h.is_deleted
                AND NOT h.is_compressed
            ORDER BY h.id DESC LIMIT 1), false) AS is_interrupted
        FROM ranked JOIN chat.monitors o ON o.id = ranked.id
        JOIN chat.chat_exec e ON e.chat_id = o.chat_id
        WHERE {_IS_CLAIMABLE}
        ORDER BY ranked.place, o.claimed_until NULLS FIRST LIMIT $2 FOR UPDATE OF o SKIP LOCKED)
    UPDATE chat.monitors m SET claimed_until = clock_timestamp() + $1::interval
    FROM chosen WHERE m.id = chosen.id
    RETURNING {_COLUMNS}, chosen.archived, chosen.is_interrupted, chosen.history_version,
        clock_timestamp() AS now
"""

# Stores what became of a monitor, unless its owner changed it meanwhile.
# May run: process.
UPDATE_MONITOR = """
    UPDATE chat.monitors SET state = $3, cause = $4, detail = $5, reason = $6, cursor = $7,
        claimed_until = clock_timestamp() + $8::interval
    WHERE id = $1 AND state = $2
"""

# Whether a monitor is as it was claimed, and its chat is still at rest with the same history.
# May run: process.
SELECT_IS_CURRENT = """
    SELECT EXISTS (SELECT 1 FROM chat.monitors m JOIN chat.chat_exec e ON e.chat_id = m.chat_id
        WHERE m.id = $1 AND m.state = $2 AND e.status IN ('waiting', 'error')
            AND e.queue_length = 0 AND e.history_version = $3)
"""

# May run: process.
SELECT_ANY_OPEN = "SELECT EXISTS (SELECT 1 FROM chat.monitors WHERE state IN ('waiting', 'due'))"


@dataclass(frozen=True, slots=True)
class ClaimedMonitor:
    """A monitor that this process works on for a while."""

    monitor: Monitor
    chat: WatchingChat
    now: datetime


class PostgresMonitors:
    """Stores monitors."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, monitor: Monitor, claim: OwnerClaim) -> None:
        """Add a monitor, unless a repeated call added it before.

        Raises:
            FenceLost: Another process owns the chat.
            MonitorRefused: The chat or its owner has as many as may be, or the chat is no root
                chat of the owner.
        """
        chat_id, owner_id = monitor.chat_id, monitor.owner.id
        async with self._pool.acquire() as connection, connection.transaction():
            await hold_claim(connection, claim)
            await connection.execute(LOCK_OWNER, owner_id)
            await connection.execute(DELETE_OLD, chat_id, owner_id, KEPT_FOR)
            row = await connection.fetchrow(COUNT_MONITORS, chat_id, owner_id, monitor.id)
            assert row is not None  # An aggregate has one row.
            if row["same_count"]:
                return
            if row["open_count"] >= OPEN_MAX:
                raise MonitorRefused(f"The chat has {OPEN_MAX} monitors that are not over.")
            if row["day_count"] >= PER_DAY_MAX:
                raise MonitorRefused(f"The chat made {PER_DAY_MAX} monitors within a day.")
            if await connection.fetchval(COUNT_OF_OWNER, owner_id) >= OWNER_OPEN_MAX:
                raise MonitorRefused(
                    f"The chats of this user have {OWNER_OPEN_MAX} monitors that are not over."
                )
            stored = await connection.fetchval(INSERT_MONITOR, *_inserted(monitor))
            if stored is None:
                raise MonitorRefused("Only the chat of a person has monitors, no agent.")

    async def has(self, chat_id: ChatId, owner_id: OwnerId, monitor_id: str) -> bool:
        """Return whether a chat has a monitor, whatever became of it."""
        return bool(await self._pool.fetchval(SELECT_IS_STORED, chat_id, owner_id, monitor_id))

    async def of_chat(self, chat_id: ChatId, owner_id: OwnerId) -> list[Monitor]:
        """Return the monitors of a chat, the newest first."""
        rows = await self._pool.fetch(SELECT_MONITORS, chat_id, owner_id, LISTED_MAX)
        return list(map(_monitor_of, rows))

    async def change(
        self,
        chat_id: ChatId,
        owner_id: OwnerId,
        monitor_id: str,
        decide: Callable[[Monitor], Monitor],
    ) -> Monitor:
        """Change the state of a monitor, and return it.

        Raises:
            ResourceNotFound: The owner's chat has no such monitor.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(LOCK_MONITOR, chat_id, owner_id, monitor_id)
            if row is None:
                raise ResourceNotFound(RESOURCE, monitor_id)
            before = _monitor_of(row)
            after = decide(before)
            if after != before:
                await connection.execute(CHANGE_STATE, after.id, after.state, after.reason)
            return after

    async def claim(self, claim_for: timedelta, monitors_max: int) -> list[ClaimedMonitor]:
        """Claim monitors, of each owner those first that were looked at longest ago; it expires."""
        return [
            ClaimedMonitor(
                _monitor_of(row),
                WatchingChat(row["archived"], row["is_interrupted"], row["history_version"]),
                row["now"],
            )
            for row in await self._pool.fetch(CLAIM, claim_for, monitors_max)
        ]

    async def is_current(self, monitor: Monitor, chat: WatchingChat) -> bool:
        """Return whether a claimed monitor was not cancelled, and its chat not used, meanwhile."""
        return bool(
            await self._pool.fetchval(
                SELECT_IS_CURRENT, monitor.id, monitor.state, chat.history_version
            )
        )

    async def store(self, before: Monitor, after: Monitor, again_in: timedelta) -> None:
        """Store what became of a claimed monitor, once; others may claim it after some time."""
        await self._pool.execute(
            UPDATE_MONITOR,
            before.id,
            before.state,
            after.state,
            after.cause or "",
            after.detail,
            after.reason,
            after.cursor,
            again_in,
        )

    async def are_there_any(self) -> bool:
        """Return whether any chat has a monitor that is not over."""
        return bool(await self._pool.fetchval(SELECT_ANY_OPEN))


def _inserted(monitor: Monitor) -> tuple[object, ...]:
    return (
        monitor.chat_id,
        monitor.owner.id,
        monitor.id,
        monitor.owner.role,
        monitor.process_id,
        monitor.command,
        monitor.pattern,
        monitor.note,
        monitor.cursor,
        monitor.created_at,
        monitor.expires_at,
    )


def _monitor_of(row: asyncpg.Record) -> Monitor:
    return Monitor(
        id=str(row["id"]),
        chat_id=ChatId(str(row["chat_id"])),
        owner=Owner(OwnerId(str(row["owner_id"])), row["owner_role"]),
        process_id=row["process_id"],
        command=row["command"],
        pattern=row["pattern"],
        note=row["note"],
        cursor=row["cursor"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        state=MonitorState(row["state"]),
        cause=MonitorCause(row["cause"]) if row["cause"] else None,
        detail=row["detail"],
        reason=row["reason"],
    )
