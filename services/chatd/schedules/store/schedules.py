"""The schedules of users in PostgreSQL, as their owners read and change them."""

from collections.abc import Callable

import asyncpg

from chatd.primitives.domain.errors import (
    InvalidRequest,
    RequestIdReused,
    ResourceNotFound,
    VersionConflict,
)
from chatd.primitives.domain.ids import OwnerId
from chatd.schedules.domain.schedule import (
    RUNS_KEPT,
    SCHEDULES_MAX,
    Run,
    Schedule,
    TooManySchedules,
)
from chatd.schedules.store.rows import COLUMNS, edited_values, inserted, run_of, schedule_of
from parley.postgres import Pool

RESOURCE = "schedule"

_LAST_RUN = """
    LEFT JOIN LATERAL (
        SELECT planned_at, begun_at, outcome, chat_id AS run_chat_id, error
        FROM chat.schedule_runs r WHERE r.schedule_id = s.id
        ORDER BY planned_at DESC LIMIT 1) last ON true
"""

# The schedules of a user, the oldest first.
# May run: owner.
SELECT_SCHEDULES = f"""
    SELECT {COLUMNS}, last.* FROM chat.schedules s {_LAST_RUN}
    WHERE s.owner_id = $1 ORDER BY s.created_at, s.id
"""

# May run: owner.
SELECT_SCHEDULE = f"""
    SELECT {COLUMNS}, last.* FROM chat.schedules s {_LAST_RUN}
    WHERE s.owner_id = $1 AND s.id = $2
"""

# May run: owner.
SELECT_RUNS = """
    SELECT r.planned_at, r.begun_at, r.outcome, r.chat_id AS run_chat_id, r.error
    FROM chat.schedules s JOIN chat.schedule_runs r ON r.schedule_id = s.id
    WHERE s.owner_id = $1 AND s.id = $2 ORDER BY r.planned_at DESC LIMIT $3
"""

# The schedules of a user are counted before one is added.
# May run: no-rows.
LOCK_OWNER = "SELECT pg_advisory_xact_lock(hashtextextended('schedules ' || $1, 0))"

# May run: owner.
COUNT_SCHEDULES = "SELECT count(*) FROM chat.schedules WHERE owner_id = $1"

# May run: owner.
INSERT_SCHEDULE = """
    INSERT INTO chat.schedules (id, owner_id, owner_role, name, text, chat_id, model_id,
        reasoning_effort, mode, workspace_id, is_unattended, at, cron, time_zone, missed_runs,
        ends_at, runs_max, state, pause_reason, next_run_at, runs_count, failures_count,
        request_hash, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 'active',
        '', $18, 0, 0, $19, clock_timestamp())
"""

# May run: owner.
LOCK_SCHEDULE = f"""
    SELECT {COLUMNS} FROM chat.schedules s WHERE s.owner_id = $1 AND s.id = $2 FOR UPDATE
"""

# A claim ends when the time of the next run changes.
# May run: owner.
UPDATE_SCHEDULE = """
    UPDATE chat.schedules SET state = $3, pause_reason = $4, next_run_at = $5, failures_count = $6,
        claimed_until = CASE WHEN next_run_at = $5 THEN claimed_until END, version = version + 1
    WHERE owner_id = $1 AND id = $2
"""

# May run: owner.
EDIT_SCHEDULE = """
    UPDATE chat.schedules SET name = $3, text = $4, chat_id = $5, model_id = $6,
        reasoning_effort = $7, mode = $8, workspace_id = $9, is_unattended = $10, at = $11,
        cron = $12, time_zone = $13, missed_runs = $14, ends_at = $15, runs_max = $16,
        state = $17, next_run_at = $18, claimed_until = NULL, version = version + 1
    WHERE owner_id = $1 AND id = $2
"""

# Sending is repeated with the same request after a crash, so the request must not change meanwhile.
# The run of a paused schedule is not repeated once its claim expired.
# May run: owner.
SELECT_IS_SENDING = """
    SELECT EXISTS (SELECT 1 FROM chat.schedules s JOIN chat.schedule_runs r ON r.schedule_id = s.id
        WHERE s.owner_id = $1 AND s.id = $2 AND r.outcome = 'sending'
            AND r.planned_at = s.next_run_at
            AND (s.state = 'active' OR s.claimed_until > clock_timestamp()))
"""

# May run: owner.
DELETE_SCHEDULE = "DELETE FROM chat.schedules WHERE owner_id = $1 AND id = $2 RETURNING id"


class PostgresSchedules:
    """Stores schedules."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def of_owner(self, owner_id: OwnerId) -> list[Schedule]:
        """Return the schedules of a user, the oldest first."""
        return list(map(_with_run, await self._pool.fetch(SELECT_SCHEDULES, owner_id)))

    async def get(self, owner_id: OwnerId, schedule_id: str) -> Schedule:
        """Return a schedule.

        Raises:
            ResourceNotFound: The user has no such schedule.
        """
        row = await self._pool.fetchrow(SELECT_SCHEDULE, owner_id, schedule_id)
        if row is None:
            raise ResourceNotFound(RESOURCE, schedule_id)
        return _with_run(row)

    async def runs(self, owner_id: OwnerId, schedule_id: str) -> tuple[Run, ...]:
        """Return the newest runs of a schedule, the newest first.

        Raises:
            ResourceNotFound: The user has no such schedule.
        """
        await self.get(owner_id, schedule_id)
        rows = await self._pool.fetch(SELECT_RUNS, owner_id, schedule_id, RUNS_KEPT)
        return tuple(map(run_of, rows))

    async def find(self, owner_id: OwnerId, schedule_id: str, request_hash: bytes) -> bool:
        """Return whether a request made a schedule before.

        Raises:
            RequestIdReused: Another request with the same id did.
        """
        row = await self._pool.fetchrow(SELECT_SCHEDULE, owner_id, schedule_id)
        if row is not None and row["request_hash"] != request_hash:
            raise RequestIdReused(schedule_id)
        return row is not None

    async def add(self, schedule: Schedule, request_hash: bytes) -> None:
        """Add a schedule, unless a repeated request added it before.

        Raises:
            RequestIdReused: Another request with the same id added one.
            TooManySchedules: The user has as many as may be.
        """
        owner_id = schedule.owner.id
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(LOCK_OWNER, owner_id)
            row = await connection.fetchrow(LOCK_SCHEDULE, owner_id, schedule.id)
            if row is not None:
                if row["request_hash"] != request_hash:
                    raise RequestIdReused(schedule.id)
                return
            if await connection.fetchval(COUNT_SCHEDULES, owner_id) >= SCHEDULES_MAX:
                raise TooManySchedules(SCHEDULES_MAX)
            await connection.execute(INSERT_SCHEDULE, *inserted(schedule, request_hash))

    async def change(
        self, owner_id: OwnerId, schedule_id: str, decide: Callable[[Schedule], Schedule]
    ) -> None:
        """Pause or resume a schedule.

        Raises:
            ResourceNotFound: The user has no such schedule.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(LOCK_SCHEDULE, owner_id, schedule_id)
            if row is None:
                raise ResourceNotFound(RESOURCE, schedule_id)
            before = schedule_of(row)
            after = decide(before)
            if after != before:
                await connection.execute(
                    UPDATE_SCHEDULE,
                    owner_id,
                    schedule_id,
                    after.state,
                    after.pause_reason,
                    after.next_run_at,
                    after.failures_count,
                )

    async def edit(
        self,
        owner_id: OwnerId,
        schedule_id: str,
        decide: Callable[[Schedule], Schedule],
        expected_version: int,
    ) -> None:
        """Change the definition of a schedule.

        Raises:
            ResourceNotFound: The user has no such schedule.
            VersionConflict: It was changed since that version.
            InvalidRequest: A run of it is being sent.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(LOCK_SCHEDULE, owner_id, schedule_id)
            if row is None:
                raise ResourceNotFound(RESOURCE, schedule_id)
            if row["version"] != expected_version:
                raise VersionConflict(str(row["version"]))
            if await connection.fetchval(SELECT_IS_SENDING, owner_id, schedule_id):
                raise InvalidRequest("schedule.id", "has a run that is being sent; try again soon")
            before = schedule_of(row)
            after = decide(before)
            if after != before:
                values = edited_values(after)
                await connection.execute(EDIT_SCHEDULE, owner_id, schedule_id, *values)

    async def delete(self, owner_id: OwnerId, schedule_id: str) -> None:
        """Delete a schedule with its runs.

        Raises:
            ResourceNotFound: The user has no such schedule.
        """
        if await self._pool.fetchval(DELETE_SCHEDULE, owner_id, schedule_id) is None:
            raise ResourceNotFound(RESOURCE, schedule_id)


def _with_run(row: asyncpg.Record) -> Schedule:
    return schedule_of(row, None if row["planned_at"] is None else run_of(row))
