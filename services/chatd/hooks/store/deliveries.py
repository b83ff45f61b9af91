"""The log of deliveries in PostgreSQL: the newest of each hook."""

import asyncpg

from chatd.hooks.domain.hooks import HookEvent
from chatd.hooks.domain.ports import Delivery, HookOutcome
from parley.postgres import Pool

DELIVERIES_MAX = 200

# Add a delivery to the log, or count one more attempt of it, and remove those beyond the limit. A
# hook that was deleted meanwhile has no log.
# May run: process.
INSERT_DELIVERY = """
    WITH old AS (
        SELECT hook_id, dispatch_id FROM chat.hook_deliveries
        WHERE hook_id = $1 AND created_at <= (
            SELECT created_at FROM chat.hook_deliveries WHERE hook_id = $1
            ORDER BY created_at DESC OFFSET $10 - 1 LIMIT 1)
        ORDER BY created_at LIMIT 10 FOR UPDATE SKIP LOCKED
    ), removed AS (
        DELETE FROM chat.hook_deliveries d USING old
        WHERE d.hook_id = old.hook_id AND d.dispatch_id = old.dispatch_id
            AND d.dispatch_id <> $2
    )
    INSERT INTO chat.hook_deliveries (hook_id, dispatch_id, chat_id, event, tool_name, outcome,
        http_status, problem, duration_ms, attempts, created_at, notice)
    SELECT h.id, $2, $3, $4, $5, $6, $7, $8, $9, 1, clock_timestamp(), $11
    FROM chat.hooks h WHERE h.id = $1
    ON CONFLICT (hook_id, dispatch_id) DO UPDATE
        SET outcome = excluded.outcome, http_status = excluded.http_status,
            problem = excluded.problem, duration_ms = excluded.duration_ms,
            attempts = hook_deliveries.attempts + 1, created_at = excluded.created_at,
            notice = excluded.notice
"""

# May run: administrator.
SELECT_DELIVERIES = """
    SELECT hook_id, dispatch_id, chat_id, event, tool_name, outcome, http_status, problem,
        duration_ms, attempts, created_at, notice
    FROM chat.hook_deliveries WHERE hook_id = $1
    ORDER BY created_at DESC, dispatch_id LIMIT $2
"""


class PostgresDeliveries:
    """The log of deliveries."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, delivery: Delivery) -> None:
        """Add a delivery, or count one more attempt of it."""
        await self._pool.execute(
            INSERT_DELIVERY,
            delivery.hook_id,
            delivery.dispatch_id,
            delivery.chat_id or None,
            delivery.event,
            delivery.tool_name,
            delivery.outcome,
            delivery.http_status,
            delivery.problem,
            delivery.duration_ms,
            DELIVERIES_MAX,
            delivery.notice,
        )

    async def deliveries(self, hook_id: str, length: int) -> tuple[Delivery, ...]:
        """Return the newest deliveries of a hook."""
        rows = await self._pool.fetch(SELECT_DELIVERIES, hook_id, length)
        return tuple(map(_delivery_of, rows))


def _delivery_of(row: asyncpg.Record) -> Delivery:
    return Delivery(
        hook_id=str(row["hook_id"]),
        dispatch_id=str(row["dispatch_id"]),
        chat_id=str(row["chat_id"] or ""),
        event=HookEvent(row["event"]),
        tool_name=row["tool_name"],
        outcome=HookOutcome(row["outcome"]),
        http_status=row["http_status"],
        problem=row["problem"],
        duration_ms=row["duration_ms"],
        attempts=row["attempts"],
        created_at=row["created_at"],
        notice=row["notice"],
    )
