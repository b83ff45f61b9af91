"""Shares and limits that name groups; they are removed when the group is deleted.

These statements have no authorisation: they run for the cleanup, not for a caller.
"""

from collections.abc import Iterable

from parley.postgres import Pool

# May run: process.
SELECT_NAMED = """
    SELECT group_id FROM (
        SELECT grantee_id AS group_id FROM chat.chat_shares
            WHERE grantee_kind = 'group' AND grantee_id > $1
        UNION
        SELECT subject_id FROM chat.spend_limits
            WHERE subject_kind = 'group' AND subject_id > $1) AS named
    ORDER BY group_id LIMIT $2
"""

# May run: process.
DELETE_SHARES = """
    DELETE FROM chat.chat_shares
    WHERE grantee_kind = 'group' AND grantee_id = ANY ($1::uuid[])
"""

# May run: process.
DELETE_LIMITS = """
    WITH gone AS (DELETE FROM chat.spend_limits
        WHERE subject_kind = 'group' AND subject_id = ANY ($1::uuid[]) RETURNING 1)
    SELECT count(*) FROM gone
"""


class PostgresGroupCleanup:
    """Shares and limits of groups in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def named(self, after: str, limit: int) -> tuple[str, ...]:
        """Return groups that a share or a limit names, in the order of their ids."""
        rows = await self._pool.fetch(SELECT_NAMED, after, limit)
        return tuple(str(row["group_id"]) for row in rows)

    async def remove(self, group_ids: Iterable[str]) -> bool:
        """Remove the shares and limits of these groups; return whether a limit was removed."""
        gone = list(group_ids)
        await self._pool.execute(DELETE_SHARES, gone)
        limits: int = await self._pool.fetchval(DELETE_LIMITS, gone)
        return limits > 0
