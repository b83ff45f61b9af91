"""Model calls in progress, in PostgreSQL.

A row contains the amount that is charged if the process of the call dies. It has no foreign key to
its chat: a call is charged even if the chat was deleted.
"""

import asyncpg

from chatd.primitives.domain.ids import ChatId, Fence, OwnerId, WorkerId
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry, OpenCall
from chatd.spend.store.ledger import ENTER, entry_arguments, entry_id, episode_id
from chatd.spend.store.use_codec import use_from_json, use_to_json
from parley.postgres import Pool

OF_TURNS = (CallPurpose.TURN, CallPurpose.COMPACTION)

COLUMNS = """
    o.id, o.chat_id, o.owner_id, o.history_version, o.generation_attempt, o.purpose,
    o.use::text AS use
"""

# May run: process.
UPSERT = """
    INSERT INTO chat.open_model_calls (id, worker_id, chat_id, owner_id, history_version,
        generation_attempt, purpose, use)
    SELECT new.id, $1, new.chat_id, new.owner_id, new.history_version, new.generation_attempt,
        new.purpose, new.use::json
    FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[], $6::bigint[], $7::text[],
        $8::text[]) AS new (id, chat_id, owner_id, history_version, generation_attempt, purpose,
        use)
    ON CONFLICT (id) DO UPDATE SET use = excluded.use, worker_id = excluded.worker_id
"""

# May run: process.
DELETE = "DELETE FROM chat.open_model_calls WHERE id = ANY ($1::uuid[])"

# May run: process.
SELECT = f"SELECT {COLUMNS} FROM chat.open_model_calls o WHERE o.id = ANY ($1::uuid[])"

# Calls of processes without a live lease. A call whose interruption is not finished is left to the
# process that finishes it, because that decides which part of the answer is kept.
# May run: process.
SELECT_ABANDONED = f"""
    SELECT {COLUMNS} FROM chat.open_model_calls o
    WHERE NOT EXISTS (
            SELECT 1 FROM chat.workers w
            WHERE w.id = o.worker_id AND w.lease_until > clock_timestamp())
        AND NOT EXISTS (
            SELECT 1 FROM chat.chat_exec e
            WHERE e.chat_id = o.chat_id AND e.status = 'interrupting'
                AND e.history_version = o.history_version
                AND e.generation_attempt = o.generation_attempt)
    ORDER BY o.id LIMIT $1 FOR UPDATE OF o SKIP LOCKED
"""


class PostgresOpenCalls:
    """The calls in progress of all processes; `write` stores those of one worker."""

    def __init__(self, pool: Pool, worker_id: WorkerId) -> None:
        self._pool = pool
        self._worker_id = worker_id

    async def write(self, changed: tuple[OpenCall, ...], ended: tuple[OpenCall, ...]) -> None:
        """Store the current state of this process's calls, and remove those that ended."""
        entries = [call.entry for call in changed]
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute("SET LOCAL synchronous_commit = off")
            if changed:
                await connection.execute(
                    UPSERT,
                    self._worker_id,
                    [entry_id(entry) for entry in entries],
                    [entry.chat_id for entry in entries],
                    [call.owner_id for call in changed],
                    [entry.history_version for entry in entries],
                    [entry.generation_attempt for entry in entries],
                    [entry.bill.purpose for entry in entries],
                    [use_to_json(entry.bill.use) for entry in entries],
                )
            if ended:
                await connection.execute(DELETE, [entry_id(call.entry) for call in ended])

    async def find(self, chat_id: ChatId, fence: Fence) -> OpenCall | None:
        """Return the call of an episode, None if there is none."""
        ids = [
            episode_id(chat_id, purpose, fence.history_version, fence.generation_attempt)
            for purpose in OF_TURNS
        ]
        row = await self._pool.fetchrow(SELECT, ids)
        return None if row is None else _call_of(row)

    async def charge_abandoned(self, calls_max: int) -> int:
        """Enter calls of dead processes into the ledger; return their number."""
        async with self._pool.acquire() as connection, connection.transaction():
            rows = await connection.fetch(SELECT_ABANDONED, calls_max)
            for call in map(_call_of, rows):
                entry = call.entry
                arguments = (*entry_arguments(entry), entry.chat_id, call.owner_id)
                await connection.execute(ENTER, *arguments)
            if rows:
                await connection.execute(DELETE, [row["id"] for row in rows])
        return len(rows)


def _call_of(row: asyncpg.Record) -> OpenCall:
    use = use_from_json(row["use"])
    assert use is not None  # The column is not null.
    entry = LedgerEntry(
        ChatId(str(row["chat_id"])),
        row["history_version"],
        row["generation_attempt"],
        Bill(CallPurpose(row["purpose"]), CallOutcome.ABORTED, use),
    )
    return OpenCall(entry, OwnerId(str(row["owner_id"])))
