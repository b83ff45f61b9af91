"""Workers in PostgreSQL: their leases, and claims of chats without an owner or with a dead one.

Renewals have a connection of their own, so that a busy pool never costs a lease. Every statement
that gives a chat to a worker requires that the worker's own lease lasts some seconds more and that
it does not drain. Claims bypass the decisions about commands because they change only the owner of
a chat; they follow the same rule that every write increments `snapshot_version`.
"""

import asyncio

import asyncpg

from chatd.chats.domain.action_answers import next_to_expire
from chatd.chats.domain.chat import ChatState, Claimed, Status
from chatd.chats.store.codec import error_to_json
from chatd.chats.store.rows import state_of
from chatd.chats.store.statements import LOCK_ORDER, STATE_COLUMNS
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId, WorkerId
from chatd.workers.domain import (
    CRASH_LOOP,
    PARKING_TAKEOVERS,
    SUSPECT_TAKEOVERS,
    DueAction,
    NamedChat,
    Replica,
    SweepLimits,
    UserLoad,
    WorkerEnded,
)
from parley.postgres import ConflictRetries, Pool, Session, typed_outages

RENEWAL_MAX_S = 3.0

# May run: process.
REGISTER = """
    INSERT INTO chat.workers (id, address, is_draining, lease_until, started_at, is_quarantine)
    VALUES ($1, $2, false, clock_timestamp() + make_interval(secs => $3), clock_timestamp(), $4)
    ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until
        WHERE workers.ended_at IS NULL
    RETURNING id
"""

# No row: the worker's row is gone, or it has ended. One row of NULLs: it owns nothing.
# May run: process.
RENEW = """
    WITH renewed AS (
        UPDATE chat.workers SET lease_until = clock_timestamp() + make_interval(secs => $2)
        WHERE id = $1 AND ended_at IS NULL RETURNING id)
    SELECT e.chat_id, e.owner_epoch, e.snapshot_version, e.status
    FROM renewed LEFT JOIN chat.chat_exec e
        ON e.worker_id = renewed.id AND e.status IN ('running', 'interrupting')
    ORDER BY e.chat_id
"""

# May run: process.
BEGIN_DRAIN = "UPDATE chat.workers SET is_draining = true WHERE id = $1"

# May run: process.
REPLICAS = """
    SELECT id, address, is_draining, is_quarantine FROM chat.workers
    WHERE lease_until > clock_timestamp() ORDER BY id
"""

MAY_CLAIM = """
    SELECT 1 FROM chat.workers
    WHERE id = $1 AND NOT is_draining AND lease_until > clock_timestamp() + interval '3 seconds'
"""

# The next owner makes its attempt at once, with the fallback model if that was decided.
KEPT_RETRY = "CASE WHEN e.retry -> 'fallback' ->> 'model_id' IS NOT NULL THEN e.retry END"

# How a chat is parked. The epoch is incremented too: a process that still runs it must stop.
PARKED = """
        status = 'error', last_error = {error}::text::json, worker_id = NULL,
        owner_epoch = e.owner_epoch + 1, snapshot_version = e.snapshot_version + 1,
        generation_attempt = 0, takeovers = 0, retry = NULL, is_compaction_requested = false,
        revert = NULL, changed_at = clock_timestamp(), changed_xid = pg_current_xact_id()
"""

# An edit whose files were to be restored is recorded without them, so that it can be undone.
RECORD_EDITS = """
    recorded AS (
        INSERT INTO chat.chat_reverts (id, chat_id, kind, message_id, restores_files,
            undone_version, open_calls, version, report, created_at, replacement_id,
            deleted_version)
        SELECT (revert ->> 'revert_id')::uuid, chat_id, 'edit', (revert ->> 'message_id')::bigint,
            false, 0, revert -> 'open_calls', snapshot_version + 1, '', clock_timestamp(),
            coalesce((revert ->> 'replacement_id')::bigint, 0),
            coalesce((revert ->> 'deleted_version')::bigint, 0)
        FROM doomed WHERE revert ->> 'kind' = 'edit')
"""

# The row is kept, so that neither a renewal in flight nor a new registration brings the worker
# back. A claim of the worker that commits after this one is found by sweeps.
# May run: process.
END = f"""
    WITH ended AS (
        UPDATE chat.workers SET ended_at = clock_timestamp(),
            lease_until = least(lease_until, clock_timestamp())
        WHERE id = $1 AND ended_at IS NULL RETURNING id),
    orphaned AS MATERIALIZED (
        SELECT e.chat_id, e.revert, e.snapshot_version,
            e.takeovers + 1 >= {PARKING_TAKEOVERS} AS is_doomed
        FROM chat.chat_exec e JOIN ended ON ended.id = e.worker_id
        WHERE e.status IN ('running', 'interrupting') {LOCK_ORDER} FOR NO KEY UPDATE OF e),
    doomed AS (SELECT * FROM orphaned WHERE is_doomed),
    {RECORD_EDITS},
    parked AS (
        UPDATE chat.chat_exec e SET {PARKED.format(error="$2")}
        FROM doomed WHERE e.chat_id = doomed.chat_id
        RETURNING {STATE_COLUMNS}),
    released AS (
        UPDATE chat.chat_exec e SET
            worker_id = NULL, owner_epoch = e.owner_epoch + 1,
            snapshot_version = e.snapshot_version + 1, takeovers = e.takeovers + 1,
            changed_at = clock_timestamp(), changed_xid = pg_current_xact_id()
        FROM orphaned WHERE e.chat_id = orphaned.chat_id AND NOT orphaned.is_doomed
        RETURNING {STATE_COLUMNS})
    SELECT * FROM parked UNION ALL SELECT * FROM released ORDER BY chat_id
"""

# The join by version drops chats that changed since they were ranked. Statuses sort as wanted:
# interrupting before running. In quarantine those with the fewest deaths come first.
# May run: process.
SWEEP = f"""
    WITH free AS MATERIALIZED (
        SELECT e.chat_id, e.snapshot_version, e.status, e.changed_at, c.owner_id, c.owner_role,
            e.worker_id IS NOT NULL AS is_orphan,
            e.takeovers + (e.worker_id IS NOT NULL)::int AS deaths
        FROM chat.chat_exec e JOIN chat.chats c ON c.id = e.chat_id
        LEFT JOIN chat.workers w ON w.id = e.worker_id
        WHERE e.status IN ('running', 'interrupting')
            AND (e.worker_id IS NULL
                OR ($5::boolean AND coalesce(w.lease_until <= clock_timestamp(), true)
                        OR w.ended_at IS NOT NULL)
                    AND e.takeovers + 1 < {PARKING_TAKEOVERS})
            AND EXISTS ({MAY_CLAIM})),
    ranked AS (
        SELECT free.*,
            row_number() OVER (ORDER BY status, deaths * $4::boolean::int, changed_at, chat_id)
                AS place,
            row_number() OVER (PARTITION BY owner_id, status ORDER BY changed_at, chat_id)
                AS place_of_user
        FROM free WHERE (deaths >= {SUSPECT_TAKEOVERS}) = $4::boolean),
    busy AS (
        SELECT c.owner_id, count(*) AS running
        FROM chat.chat_exec e JOIN chat.chats c ON c.id = e.chat_id
        JOIN chat.workers w ON w.id = e.worker_id AND w.lease_until > clock_timestamp()
        WHERE e.status = 'running' GROUP BY c.owner_id),
    picked AS (
        SELECT e.chat_id, r.owner_id, r.owner_role, r.is_orphan, r.place
        FROM ranked r
        JOIN chat.chat_exec e ON e.chat_id = r.chat_id AND e.snapshot_version = r.snapshot_version
        LEFT JOIN busy ON busy.owner_id = r.owner_id
        WHERE r.status = 'interrupting' OR r.place_of_user + coalesce(busy.running, 0) <= $3::int
        ORDER BY r.place LIMIT $2::int FOR NO KEY UPDATE OF e SKIP LOCKED),
    taken AS (
        UPDATE chat.chat_exec e SET
            worker_id = $1, owner_epoch = e.owner_epoch + 1,
            snapshot_version = e.snapshot_version + 1,
            generation_attempt = e.generation_attempt + (e.status = 'running')::int,
            takeovers = e.takeovers + picked.is_orphan::int, retry = {KEPT_RETRY},
            changed_at = clock_timestamp(), changed_xid = pg_current_xact_id()
        FROM picked WHERE e.chat_id = picked.chat_id
        RETURNING {STATE_COLUMNS}, picked.owner_id, picked.owner_role, picked.place)
    SELECT * FROM taken ORDER BY place
"""

# One row without a user: nobody has reached the limit.
# May run: process.
USER_LOAD = """
    WITH alive AS (
        SELECT id FROM chat.workers WHERE lease_until > clock_timestamp() AND NOT is_quarantine),
    busy AS (
        SELECT c.owner_id
        FROM chat.chat_exec e JOIN chat.chats c ON c.id = e.chat_id
        JOIN chat.workers w ON w.id = e.worker_id AND w.lease_until > clock_timestamp()
        WHERE e.status = 'running' GROUP BY c.owner_id HAVING count(*) >= $1::int)
    SELECT replicas.count, busy.owner_id
    FROM (SELECT count(*) FROM alive) AS replicas LEFT JOIN busy ON true
"""

# May run: process.
PARK = f"""
    WITH doomed AS (
        SELECT e.chat_id, e.revert, e.snapshot_version
        FROM chat.chat_exec e
        LEFT JOIN chat.workers w ON w.id = e.worker_id AND w.lease_until > clock_timestamp()
        WHERE e.status IN ('running', 'interrupting') AND e.worker_id IS NOT NULL AND w.id IS NULL
            AND e.takeovers + 1 >= {PARKING_TAKEOVERS} AND EXISTS ({MAY_CLAIM})
        ORDER BY e.changed_at LIMIT $2::int FOR NO KEY UPDATE OF e SKIP LOCKED),
    {RECORD_EDITS}
    UPDATE chat.chat_exec e SET {PARKED.format(error="$3")}
    FROM doomed WHERE e.chat_id = doomed.chat_id RETURNING {STATE_COLUMNS}
"""

# May run: process.
NEEDS_QUARANTINE = f"""
    SELECT EXISTS (
            SELECT 1 FROM chat.chat_exec e
            LEFT JOIN chat.workers w ON w.id = e.worker_id AND w.lease_until > clock_timestamp()
            WHERE e.status IN ('running', 'interrupting') AND w.id IS NULL
                AND e.takeovers + (e.worker_id IS NOT NULL)::int >= {SUSPECT_TAKEOVERS})
        AND NOT EXISTS (
            SELECT 1 FROM chat.workers
            WHERE is_quarantine AND NOT is_draining AND lease_until > clock_timestamp())
"""

# May run: process.
RECLAIM = f"""
    UPDATE chat.chat_exec e SET
        owner_epoch = e.owner_epoch + 1, snapshot_version = e.snapshot_version + 1,
        generation_attempt = e.generation_attempt + (e.status = 'running')::int,
        retry = {KEPT_RETRY},
        changed_at = clock_timestamp(), changed_xid = pg_current_xact_id()
    FROM chat.chats c
    WHERE c.id = e.chat_id AND e.chat_id = $2 AND e.worker_id = $1 AND e.owner_epoch = $3
        AND EXISTS ({MAY_CLAIM})
    RETURNING {STATE_COLUMNS}, c.owner_id, c.owner_role
"""

# May run: process.
DUE_ACTIONS = f"""
    SELECT {STATE_COLUMNS}, c.owner_id, c.owner_role
    FROM chat.chat_exec e JOIN chat.chats c ON c.id = e.chat_id
    WHERE e.deadline_at <= clock_timestamp() ORDER BY e.deadline_at LIMIT $1::int
"""

# May run: process.
OWNED = f"""
    SELECT {STATE_COLUMNS} FROM chat.chat_exec e
    WHERE e.worker_id = $1 AND e.status IN ('running', 'interrupting') ORDER BY e.chat_id
"""

# May run: process.
STATES = f"""
    SELECT {STATE_COLUMNS} FROM chat.chat_exec e
    WHERE e.chat_id = ANY ($1::uuid[]) ORDER BY e.chat_id
"""

# How many chats would be claimed up to and including this one; 0 when it does not wait.
# May run: process.
PLACE_IN_LINE = """
    SELECT count(*)
    FROM chat.chat_exec mine JOIN chat.chat_exec e
        ON e.worker_id IS NULL AND e.status IN ('running', 'interrupting')
        AND (e.status, e.changed_at, e.chat_id) <= (mine.status, mine.changed_at, mine.chat_id)
    WHERE mine.chat_id = $1 AND mine.worker_id IS NULL
        AND mine.status IN ('running', 'interrupting')
"""


class PostgresWorkers:
    """Leases and claims in PostgreSQL; `close` ends the connection of the renewals."""

    def __init__(
        self,
        pool: Pool,
        session: Session,
        retries: ConflictRetries,
        *,
        renewal_max_s: float = RENEWAL_MAX_S,
    ) -> None:
        self._pool = pool
        self._session = session
        self._retries = retries
        self._renewal_max_s = renewal_max_s
        self._line: asyncpg.Connection[asyncpg.Record] | None = None

    def close(self) -> None:
        """Terminate the connection of the renewals without waiting."""
        if self._line is not None:
            self._line.terminate()
            self._line = None

    async def register(
        self, worker_id: WorkerId, address: str, lease_s: float, *, is_quarantine: bool = False
    ) -> None:
        """Insert the row of a worker that starts.

        Raises:
            WorkerEnded: The id was used by a worker that has ended.
        """
        row = (worker_id, address, lease_s, is_quarantine)
        if await self._pool.fetchval(REGISTER, *row) is None:
            raise WorkerEnded(worker_id)

    async def renew(self, worker_id: WorkerId, lease_s: float) -> tuple[NamedChat, ...] | None:
        """Extend the lease; return the chats that name the worker, None if it is gone or ended.

        Raises:
            DatabaseUnavailable: No answer in time; the lease may have been extended all the same.
        """
        if self._line is None or self._line.is_closed():
            self._line = await self._session.open()
        # Cancelling the query would wait for the server, which does not answer.
        limit = asyncio.get_running_loop().call_later(self._renewal_max_s, self._line.terminate)
        try:
            with typed_outages():
                rows = await self._line.fetch(RENEW, worker_id, lease_s)
        except BaseException:
            self.close()
            raise
        finally:
            limit.cancel()
        if not rows:
            return None
        return tuple(_named_chat_of(row) for row in rows if row["chat_id"] is not None)

    async def begin_drain(self, worker_id: WorkerId) -> None:
        """Mark the worker as draining, so that it claims no more chats."""
        await self._pool.execute(BEGIN_DRAIN, worker_id)

    async def end(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """End a worker permanently and release or park its chats, which are returned."""
        error = error_to_json(CRASH_LOOP)
        rows = await self._retries.run(lambda: self._pool.fetch(END, worker_id, error))
        return tuple(map(state_of, rows))

    async def replicas(self) -> tuple[Replica, ...]:
        """Return the live processes, also those in quarantine."""
        rows = await self._pool.fetch(REPLICAS)
        return tuple(
            Replica(
                WorkerId(str(row["id"])), row["address"], row["is_draining"], row["is_quarantine"]
            )
            for row in rows
        )

    async def sweep(self, worker_id: WorkerId, limits: SweepLimits) -> tuple[Claimed, ...]:
        """Claim chats without a live owner: interrupting ones first, then by oldest change."""
        rows = await self._pool.fetch(
            SWEEP,
            worker_id,
            limits.chats_max,
            limits.running_per_user_max,
            limits.is_quarantine,
            limits.may_take_orphans,
        )
        return tuple(map(_claimed_of, rows))

    async def user_load(self, running_per_user_max: int) -> UserLoad:
        """Return the users whose running chats have reached a limit, in all processes together."""
        rows = await self._pool.fetch(USER_LOAD, running_per_user_max)
        at_limit = (row["owner_id"] for row in rows if row["owner_id"] is not None)
        return UserLoad(
            max(1, rows[0]["count"]), frozenset(OwnerId(str(owner_id)) for owner_id in at_limit)
        )

    async def park(self, worker_id: WorkerId, chats_max: int) -> tuple[ChatState, ...]:
        """End the turns that killed two owners in quarantine."""
        rows = await self._pool.fetch(PARK, worker_id, chats_max, error_to_json(CRASH_LOOP))
        return tuple(map(state_of, rows))

    async def needs_quarantine(self) -> bool:
        """Return whether a suspect waits for an owner and no live worker takes suspects."""
        is_needed: bool = await self._pool.fetchval(NEEDS_QUARANTINE)
        return is_needed

    async def reclaim(
        self, worker_id: WorkerId, chat_id: ChatId, owner_epoch: int
    ) -> Claimed | None:
        """Claim again a chat that the worker owns already; None if that has changed."""
        row = await self._pool.fetchrow(RECLAIM, worker_id, chat_id, owner_epoch)
        return None if row is None else _claimed_of(row)

    async def due_actions(self, chats_max: int) -> tuple[DueAction, ...]:
        """Return chats with an action that was not answered in time, the longest overdue first."""
        rows = await self._pool.fetch(DUE_ACTIONS, chats_max)
        return tuple(
            DueAction(ChatId(str(row["chat_id"])), _owner_of(row), next_to_expire(state_of(row)))
            for row in rows
        )

    async def owned(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """Return the chats that name the worker."""
        rows = await self._pool.fetch(OWNED, worker_id)
        return tuple(map(state_of, rows))

    async def states(self, chat_ids: tuple[ChatId, ...]) -> tuple[ChatState, ...]:
        """Return the current states of those that exist."""
        rows = await self._pool.fetch(STATES, chat_ids)
        return tuple(map(state_of, rows))

    async def place_in_line(self, chat_id: ChatId) -> int | None:
        """Return the queue position of a chat that waits for an owner, from 1; else None."""
        place: int = await self._pool.fetchval(PLACE_IN_LINE, chat_id)
        return place or None


def _named_chat_of(row: asyncpg.Record) -> NamedChat:
    return NamedChat(
        chat_id=ChatId(str(row["chat_id"])),
        owner_epoch=row["owner_epoch"],
        snapshot_version=row["snapshot_version"],
        status=Status(row["status"]),
    )


def _claimed_of(row: asyncpg.Record) -> Claimed:
    return Claimed(state_of(row), _owner_of(row))


def _owner_of(row: asyncpg.Record) -> Owner:
    return Owner(OwnerId(str(row["owner_id"])), row["owner_role"])
