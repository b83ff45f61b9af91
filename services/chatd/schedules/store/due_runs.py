"""Runs that are due, in PostgreSQL: one process at a time sends each, and all record it once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from chatd.schedules.domain.schedule import RUNS_KEPT, Run, RunOutcome, Schedule
from chatd.schedules.store.rows import COLUMNS, schedule_of
from parley.postgres import Connection, Pool

_IS_SUSPENDED = "EXISTS (SELECT 1 FROM chat.suspended_users b WHERE b.user_id = d.owner_id)"

# The schedule that is due longest and that no process claimed, for some time; none of suspended
# users. One whose claim expired counts from then on, so that it does not hold up others. A schedule
# that another process claims now is passed over.
# May run: process.
CLAIM = f"""
    WITH due AS (
        SELECT id FROM chat.schedules d
        WHERE state = 'active' AND next_run_at <= clock_timestamp()
            AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
            AND NOT {_IS_SUSPENDED}
        ORDER BY greatest(next_run_at, claimed_until) LIMIT 1 FOR UPDATE SKIP LOCKED)
    UPDATE chat.schedules s SET claimed_until = clock_timestamp() + $1::interval
    FROM due WHERE s.id = due.id
    RETURNING {COLUMNS}, clock_timestamp() AS now, (SELECT r.begun_at FROM chat.schedule_runs r
        WHERE r.schedule_id = s.id AND r.planned_at = s.next_run_at) AS begun_at
"""

# The run is known before it is sent, so that a process that ends meanwhile leaves a trace. There is
# no row if the schedule was changed or deleted, or the run was recorded, since it was claimed; a
# change that is not committed yet is waited for.
# May run: process.
BEGIN_RUN = """
    INSERT INTO chat.schedule_runs (schedule_id, planned_at, begun_at, outcome, error)
    SELECT id, $2, clock_timestamp(), 'sending', '' FROM chat.schedules
    WHERE id = $1 AND state = 'active' AND next_run_at = $2 AND version = $3 FOR SHARE
    ON CONFLICT (schedule_id, planned_at) DO UPDATE SET begun_at = schedule_runs.begun_at
    WHERE schedule_runs.outcome = 'sending' RETURNING planned_at
"""

# May run: process.
LOCK_SCHEDULE = f"SELECT {COLUMNS} FROM chat.schedules s WHERE s.id = $1 FOR UPDATE"

# Stores the schedule after a run; a claim ends when the time of the next run changes.
# May run: checked by LOCK_SCHEDULE.
UPDATE_SCHEDULE = """
    UPDATE chat.schedules SET state = $2, pause_reason = $3, next_run_at = $4, runs_count = $5,
        failures_count = $6,
        claimed_until = CASE WHEN next_run_at = $4 THEN claimed_until END
    WHERE id = $1
"""

# May run: checked by LOCK_SCHEDULE.
RECORD_RUN = """
    INSERT INTO chat.schedule_runs (schedule_id, planned_at, begun_at, outcome, chat_id, error)
    VALUES ($1, $2, clock_timestamp(), $3, $4, $5)
    ON CONFLICT (schedule_id, planned_at) DO UPDATE SET outcome = excluded.outcome,
        chat_id = excluded.chat_id, error = excluded.error
    WHERE schedule_runs.outcome = 'sending'
"""

# May run: checked by LOCK_SCHEDULE.
DELETE_OLD_RUNS = """
    DELETE FROM chat.schedule_runs WHERE schedule_id = $1 AND planned_at < (
        SELECT min(planned_at) FROM (SELECT planned_at FROM chat.schedule_runs
            WHERE schedule_id = $1 ORDER BY planned_at DESC LIMIT $2) kept)
"""

# When the next run is due that no process claimed, and whether turns of runs are still open.
# May run: process.
SELECT_NEXT = f"""
    SELECT extract(epoch FROM min(greatest(next_run_at, claimed_until)) - clock_timestamp())
        ::float8 AS wait_s, EXISTS (
        SELECT 1 FROM chat.schedule_runs WHERE outcome = 'started') AS is_open
    FROM chat.schedules d WHERE state = 'active' AND NOT {_IS_SUSPENDED}
"""

# Runs whose chat came to rest or was deleted. A chat that has messages waiting goes on.
# May run: process.
SELECT_ENDED = """
    SELECT r.schedule_id, r.planned_at, e.chat_id IS NULL AS is_deleted,
        e.last_error ->> 'message' AS error
    FROM chat.schedule_runs r LEFT JOIN chat.chat_exec e ON e.chat_id = r.chat_id
    WHERE r.outcome = 'started' AND (e.chat_id IS NULL
        OR (e.status IN ('waiting', 'error') AND e.queue_length = 0))
    ORDER BY r.begun_at LIMIT $1
"""

# May run: checked by LOCK_SCHEDULE.
END_RUN = """
    UPDATE chat.schedule_runs SET outcome = $3, error = $4
    WHERE schedule_id = $1 AND planned_at = $2 AND outcome = 'started' RETURNING planned_at
"""

Decide = Callable[[Schedule], Schedule]


@dataclass(frozen=True, slots=True)
class DueRun:
    """A run that this process claimed.

    Attributes:
        begun_at: When a process began to send it; None if none did.
        now: The time of the database.
    """

    schedule: Schedule
    planned_at: datetime
    begun_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run whose chat came to rest or was deleted."""

    schedule_id: str
    planned_at: datetime
    outcome: RunOutcome
    error: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """When there is something to do: seconds until the next run, and whether turns are open."""

    wait_s: float | None
    is_open: bool


class PostgresDueRuns:
    """Claims and records runs."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def claim(self, claim_for: timedelta) -> DueRun | None:
        """Claim a run that is due; None if there is none. A claim that is not used expires."""
        row = await self._pool.fetchrow(CLAIM, claim_for)
        if row is None:
            return None
        return DueRun(schedule_of(row), row["next_run_at"], row["begun_at"], row["now"])

    async def begin(self, due: DueRun) -> bool:
        """Store that a run is being sent; return whether it is still to be sent."""
        begun = await self._pool.fetchval(
            BEGIN_RUN, due.schedule.id, due.planned_at, due.schedule.version
        )
        return begun is not None

    async def record(self, schedule_id: str, run: Run, decide: Decide) -> None:
        """Record a run and its change of the schedule; a second record changes nothing."""
        async with self._pool.acquire() as connection, connection.transaction():
            schedule = await _locked(connection, schedule_id)
            if schedule is None:
                return  # It was deleted meanwhile.
            await connection.execute(
                RECORD_RUN, schedule_id, run.planned_at, run.outcome, run.chat_id or None, run.error
            )
            await connection.execute(DELETE_OLD_RUNS, schedule_id, RUNS_KEPT)
            if schedule.next_run_at == run.planned_at:
                await _update(connection, decide(schedule))

    async def ended(self, runs_max: int) -> tuple[EndedRun, ...]:
        """Return runs whose chats came to rest."""
        return tuple(map(_ended_of, await self._pool.fetch(SELECT_ENDED, runs_max)))

    async def end(self, ended: EndedRun, decide: Decide) -> None:
        """Record how the turn of a run ended, once."""
        async with self._pool.acquire() as connection, connection.transaction():
            schedule = await _locked(connection, ended.schedule_id)
            if schedule is None:
                return
            changed = await connection.fetchval(
                END_RUN, ended.schedule_id, ended.planned_at, ended.outcome, ended.error
            )
            if changed is not None:
                await _update(connection, decide(schedule))

    async def outlook(self) -> Outlook:
        """Return when there is something to do."""
        row = await self._pool.fetchrow(SELECT_NEXT)
        assert row is not None  # An aggregate has one row.
        return Outlook(row["wait_s"], row["is_open"])


async def _locked(connection: Connection, schedule_id: str) -> Schedule | None:
    row = await connection.fetchrow(LOCK_SCHEDULE, schedule_id)
    return None if row is None else schedule_of(row)


async def _update(connection: Connection, schedule: Schedule) -> None:
    await connection.execute(
        UPDATE_SCHEDULE,
        schedule.id,
        schedule.state,
        schedule.pause_reason,
        schedule.next_run_at,
        schedule.runs_count,
        schedule.failures_count,
    )


def _ended_of(row: asyncpg.Record) -> EndedRun:
    error = row["error"] or ""
    if row["is_deleted"]:
        outcome = RunOutcome.CHAT_DELETED
    else:
        outcome = RunOutcome.FAILED if error else RunOutcome.COMPLETED
    return EndedRun(str(row["schedule_id"]), row["planned_at"], outcome, error)
