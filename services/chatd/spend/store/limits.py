"""Spend limits, and the amounts that count against them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.store.audit_outbox import record_event
from chatd.spend.domain.limits import (
    EVERYONE,
    LimitPeriod,
    SpendLimit,
    Subject,
    SubjectKind,
)
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Pool

NO_USER_ID = "00000000-0000-0000-0000-000000000000"

# All limits, used only by this process to check calls.
# May run: process.
SELECT_LIMITS = "SELECT subject_kind, subject_id, limit_micros, period FROM chat.spend_limits"

# A page of limits, for administrators.
# May run: administrator.
SELECT_LIMIT_PAGE = f"""
    {SELECT_LIMITS} WHERE (subject_kind, subject_id) > ($1::text, $2::uuid)
    ORDER BY subject_kind, subject_id LIMIT $3
"""

# For administrators.
# May run: administrator.
UPSERT_LIMIT = """
    INSERT INTO chat.spend_limits (subject_kind, subject_id, limit_micros, period)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (subject_kind, subject_id)
        DO UPDATE SET limit_micros = excluded.limit_micros, period = excluded.period
"""

# For administrators.
# May run: administrator.
DELETE_LIMIT = "DELETE FROM chat.spend_limits WHERE subject_kind = $1 AND subject_id = $2"

# The amount a user spent since a time; calls without a price do not count.
# May run: owner.
SELECT_SPENT = """
    SELECT coalesce(sum(cost_micros), 0)::bigint FROM chat.usage
    WHERE owner_id = $1 AND created_at >= $2
"""

# The same for each period, with the user's groups at the chat's last admission.
# May run: process.
SELECT_SPENT_BY_PERIOD = """
    SELECT coalesce((SELECT owner_group_ids FROM chat.chats WHERE id = $1), '{}') AS group_ids,
        coalesce(sum(cost_micros) FILTER (WHERE created_at >= $3), 0)::bigint AS day,
        coalesce(sum(cost_micros) FILTER (WHERE created_at >= $4), 0)::bigint AS week,
        coalesce(sum(cost_micros) FILTER (WHERE created_at >= $5), 0)::bigint AS month
    FROM chat.usage
    WHERE owner_id = $2 AND created_at >= least($3::timestamptz, $4::timestamptz, $5::timestamptz)
"""

# Part of the admission of the owner's request.
# May run: process.
REMEMBER_GROUPS = """
    UPDATE chat.chats SET owner_group_ids = $2
    WHERE id = $1 AND owner_group_ids IS DISTINCT FROM $2::uuid[]
"""


@dataclass(frozen=True, slots=True)
class ChatSpending:
    """What a chat's owner spent in each current period, and the groups stored with the chat."""

    group_ids: tuple[str, ...]
    spent_micros: Mapping[LimitPeriod, int]


class PostgresLimits:
    """Limits and spending in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def limits(self) -> tuple[SpendLimit, ...]:
        """Return all limits."""
        return tuple(map(_limit_of, await self._pool.fetch(SELECT_LIMITS)))

    async def page(self, after: Subject | None, length: int) -> tuple[SpendLimit, ...]:
        """Return the limits after a subject, in a fixed order."""
        kind = "" if after is None else after.kind
        subject_id = NO_USER_ID if after is None else after.id or NO_USER_ID
        rows = await self._pool.fetch(SELECT_LIMIT_PAGE, kind, subject_id, length)
        return tuple(map(_limit_of, rows))

    async def put(self, limit: SpendLimit) -> None:
        """Set the limit of a subject; 0 removes it."""
        subject = (limit.subject.kind, limit.subject.id or NO_USER_ID)
        async with self._pool.acquire() as connection, connection.transaction():
            if limit.limit_micros == 0:
                await connection.execute(DELETE_LIMIT, *subject)
            else:
                await connection.execute(UPSERT_LIMIT, *subject, limit.limit_micros, limit.period)
            await record_event(connection, _event(limit))

    async def spent_micros(self, owner_id: OwnerId, since: datetime) -> int:
        """Return the amount that a user spent since a time."""
        spent: int = await self._pool.fetchval(SELECT_SPENT, owner_id, since)
        return spent

    async def spending_of(
        self, chat_id: ChatId, owner_id: OwnerId, since: Mapping[LimitPeriod, datetime]
    ) -> ChatSpending:
        """Return the amount a chat's owner spent since the start of each period."""
        starts = (since[LimitPeriod.DAY], since[LimitPeriod.WEEK], since[LimitPeriod.MONTH])
        row = await self._pool.fetchrow(SELECT_SPENT_BY_PERIOD, chat_id, owner_id, *starts)
        assert row is not None  # An aggregate always returns a row.
        spent = {period: row[period.value] for period in LimitPeriod}
        return ChatSpending(tuple(map(str, row["group_ids"])), spent)

    async def remember_groups(self, chat_id: ChatId, group_ids: tuple[str, ...]) -> None:
        """Store the current groups of a chat's owner with the chat."""
        await self._pool.execute(REMEMBER_GROUPS, chat_id, group_ids)


def _event(limit: SpendLimit) -> AuditEvent:
    subject = limit.subject
    details = {
        "subject_kind": subject.kind.value,
        "limit_micros": str(limit.limit_micros),
        "period": limit.period.value,
    }
    user_id = subject.id if subject.kind is SubjectKind.USER else None
    return AuditEvent(AuditAction.SPEND_LIMIT_SET, subject.id, user_id, details=details)


def _limit_of(row: asyncpg.Record) -> SpendLimit:
    kind = SubjectKind(row["subject_kind"])
    subject = EVERYONE if kind is EVERYONE.kind else Subject(kind, str(row["subject_id"]))
    return SpendLimit(subject, row["limit_micros"], LimitPeriod(row["period"]))
