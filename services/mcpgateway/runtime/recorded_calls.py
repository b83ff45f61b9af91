"""The record of finished calls, kept longer than their journal and without their content."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from mcpgateway.client.call import Outcome
from mcpgateway.servers.domain import Reason
from parley.clock import Clock
from parley.postgres import Database

DELETED_AT_ONCE_MAX: Final = 5000
EXPIRE_S: Final = 3600.0

# May run: user, administrator.
_PAGE = """
    SELECT * FROM mcp.recorded_calls
    WHERE ($1 = '' OR user_id = $1) AND ($2 = '' OR server_id = $2) AND ($3 = '' OR chat_id = $3)
        AND ($4 = '' OR outcome = $4)
        AND ($5::timestamptz IS NULL OR (started_at, execution_id) < ($5, $6))
    ORDER BY started_at DESC, execution_id DESC LIMIT $7
"""
# May run: process.
_DELETE = """
    WITH old AS (
        SELECT execution_id FROM mcp.recorded_calls WHERE started_at < now() - $1::interval
        LIMIT $2 FOR UPDATE SKIP LOCKED),
    deleted AS (
        DELETE FROM mcp.recorded_calls c USING old WHERE c.execution_id = old.execution_id
        RETURNING 1)
    SELECT count(*) FROM deleted
"""


@dataclass(frozen=True, slots=True)
class CallFilter:
    """The filter of a listing; empty fields filter nothing."""

    user_id: str = ""
    server_id: str = ""
    chat_id: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A finished call as recorded."""

    execution_id: str
    server_id: str
    slug: str
    tool: str
    user_id: str
    chat_id: str
    started_at: datetime
    duration_ms: int
    outcome: Outcome
    reason: Reason | None
    original_bytes: int


class RecordedCalls:
    """Reads the record, and deletes what is too old; the journal writes it."""

    def __init__(self, database: Database, kept: timedelta) -> None:
        self._database = database
        self._kept = kept

    async def page(
        self, wanted: CallFilter, before: tuple[datetime, str] | None, limit: int
    ) -> Sequence[RecordedCall]:
        """Return calls, the newest first."""
        started_at, execution_id = before or (None, "")
        rows = await self._database.pool.fetch(
            _PAGE,
            wanted.user_id,
            wanted.server_id,
            wanted.chat_id,
            wanted.outcome,
            started_at,
            execution_id,
            limit,
        )
        return [
            RecordedCall(
                execution_id=row["execution_id"],
                server_id=row["server_id"],
                slug=row["slug"],
                tool=row["tool"],
                user_id=row["user_id"],
                chat_id=row["chat_id"],
                started_at=row["started_at"],
                duration_ms=row["duration_ms"],
                outcome=Outcome(row["outcome"]),
                reason=Reason(row["reason"]) if row["reason"] else None,
                original_bytes=row["original_bytes"],
            )
            for row in rows
        ]

    async def expire(self, clock: Clock) -> None:
        """Delete calls that are too old, periodically."""
        while True:
            if not await self.delete_expired():
                await clock.sleep(EXPIRE_S)

    async def delete_expired(self) -> bool:
        """Delete calls that are too old; return whether there may be more."""
        count = await self._database.pool.fetchval(_DELETE, self._kept, DELETED_AT_ONCE_MAX)
        return bool(count == DELETED_AT_ONCE_MAX)
