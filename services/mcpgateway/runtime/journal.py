"""The durable journal of calls: their start, owner and end.

Every statement about a call first stores the epoch of its chat's owner, in the same transaction,
and rejects an epoch lower than the stored one. A call is inserted before it is sent to its server,
and ended once; a second writer reads the row of the first. Of an acknowledged call a tombstone is
kept for good: a caller that restored an older database may ask for it again. The tombstone is
stored long before the row is deleted, so that every statement finds one of the two.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Self
from weakref import WeakValueDictionary

from mcpgateway.client.call import CallEnd, CallKey, CallRecord, CallRequest
from mcpgateway.client.content import encode_parts
from mcpgateway.client.questions import Answer
from mcpgateway.runtime.journal_rows import (
    CallQuestions,
    check_capacity,
    check_content,
    checked_record,
    decode_answer,
    record_of,
    tombstone,
    tombstone_digest,
)
from mcpgateway.servers.domain import Limits
from mcpgateway.servers.errors import JournalChanged, ServerChanged, StaleOwner
from parley.postgres import Database

LEASE: Final = timedelta(seconds=15)
KEPT: Final = timedelta(hours=1)
#: Longer than any statement takes.
PRUNED_ROW_KEPT: Final = timedelta(minutes=5)
TOKEN_RESULTS_KEPT: Final = timedelta(hours=24)
#: Of calls that chatd never acknowledges, because it was killed.
UNACKNOWLEDGED_KEPT: Final = timedelta(days=7)
PRUNED_AT_ONCE_MAX: Final = 2000
TOKEN_PREFIX: Final = "token:"

# May run: service.
_STORE_EPOCH = """
    INSERT INTO mcp.chat_owners (chat_id, owner_epoch) VALUES ($1, $2)
    ON CONFLICT (chat_id) DO UPDATE SET
        owner_epoch = GREATEST(chat_owners.owner_epoch, excluded.owner_epoch), changed_at = now()
    RETURNING owner_epoch
"""
# May run: service.
_READ = "SELECT * FROM mcp.calls WHERE execution_id = $1"
# May run: service.
_FIND = """
    SELECT c.*, t.digest IS NOT NULL AS has_tombstone
    FROM (SELECT $1 AS asked_id) AS asked
    LEFT JOIN mcp.calls c ON c.execution_id = asked_id
    LEFT JOIN mcp.tombstones t ON t.digest = $2
"""
# Without a lock: a call that is being journaled now is found only when this one begins.
# May run: service.
_PEEK = """
    SELECT EXISTS (SELECT FROM mcp.calls WHERE execution_id = $1)
        OR EXISTS (SELECT FROM mcp.tombstones WHERE digest = $2) AS is_known,
        coalesce((SELECT owner_epoch FROM mcp.chat_owners WHERE chat_id = $3), 0) AS owner_epoch
"""
# A server of another version than the caller read is not called; the counts are without this call.
# May run: service.
_BEGIN = """
    WITH begun AS (
        INSERT INTO mcp.calls (execution_id, caller, chat_id, owner_epoch, sha256, server_id,
            user_id, tool, gateway_id)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
        WHERE NOT EXISTS (SELECT FROM mcp.tombstones WHERE digest = $10)
            AND ($11::bigint IS NULL OR EXISTS (
                SELECT FROM mcp.servers WHERE id::text = $6 AND version = $11))
        ON CONFLICT (execution_id) DO NOTHING RETURNING *)
    SELECT begun.*, running.* FROM begun, (
        SELECT count(*) AS of_server, count(*) FILTER (WHERE user_id = $7) AS of_user
        FROM mcp.calls WHERE server_id = $6 AND finished_at IS NULL AND question_id IS NULL
    ) AS running
"""
# Calls of one server begin one after another, so that all replicas together keep its limits.
# May run: service.
_LOCK_SERVER = "SELECT pg_advisory_xact_lock(hashtextextended('mcp.calls ' || $1, 0))"
# May run: process.
_RECORD = """
    INSERT INTO mcp.recorded_calls (execution_id, server_id, slug, tool, user_id, chat_id,
        started_at, duration_ms, outcome, reason, original_bytes)
    SELECT execution_id, server_id,
        coalesce((SELECT slug FROM mcp.servers s WHERE s.id::text = ended.server_id), ''), tool,
        user_id, chat_id, started_at,
        extract(epoch FROM finished_at - started_at) * 1000, outcome, coalesce(reason, ''),
        original_bytes
    FROM ended ON CONFLICT DO NOTHING
"""
# May run: process.
_FINISH = f"""
    WITH ended AS (
        UPDATE mcp.calls SET finished_at = now(), outcome = $2, reason = $3, message = $4,
            may_have_executed = $5, retry_after_ms = $6, original_bytes = $7, parts = $8,
            question_id = NULL, question = NULL, answer = NULL
        WHERE execution_id = $1 AND finished_at IS NULL RETURNING *),
    recorded AS ({_RECORD})
    SELECT * FROM ended
"""
# May run: service.
_INSERT_CANCELLED = """
    INSERT INTO mcp.calls (execution_id, caller, chat_id, owner_epoch, server_id, user_id, tool,
        finished_at, outcome, reason, message, may_have_executed)
    SELECT $1, $2, $3, $4, '', '', '', now(), 'cancelled', 'CANCELLED',
        'cancelled before it started', false
    WHERE NOT EXISTS (SELECT FROM mcp.tombstones WHERE digest = $5)
    ON CONFLICT (execution_id) DO NOTHING RETURNING *
"""
# May run: service.
_ASK_CANCEL = """
    UPDATE mcp.calls SET cancel_requested_at = coalesce(cancel_requested_at, now())
    WHERE execution_id = $1 AND finished_at IS NULL
"""
# May run: administrator.
_ASK_CANCEL_OF_SERVER = """
    UPDATE mcp.calls SET cancel_requested_at = coalesce(cancel_requested_at, now())
    WHERE server_id = $1 AND finished_at IS NULL
"""
# May run: user, administrator.
_ASK_CANCEL_OF_USER = """
    UPDATE mcp.calls SET cancel_requested_at = coalesce(cancel_requested_at, now())
    WHERE server_id = $1 AND user_id = $2 AND finished_at IS NULL
"""
# May run: administrator.
_USERS_CALLING = """
    SELECT DISTINCT user_id FROM mcp.calls WHERE server_id = $1 AND finished_at IS NULL
"""
# May run: administrator.
_HAS_CALLS = """
    SELECT EXISTS (SELECT FROM mcp.calls WHERE server_id = $1)
        OR EXISTS (SELECT FROM mcp.recorded_calls WHERE server_id = $1)
"""
# May run: service.
_ACKNOWLEDGE = """
    UPDATE mcp.calls SET acknowledged_at = coalesce(acknowledged_at, now()), parts = NULL,
        message = ''
    WHERE execution_id = ANY($1) AND caller = $2 AND finished_at IS NOT NULL
    RETURNING execution_id
"""
# May run: service.
_FIND_TOMBSTONES = "SELECT digest::text FROM mcp.tombstones WHERE digest = ANY($1)"
# May run: process.
_RENEW = """
    INSERT INTO mcp.gateways (id, lease_expires_at) VALUES ($1, now() + $2)
    ON CONFLICT (id) DO UPDATE SET lease_expires_at = excluded.lease_expires_at
"""
# Only here, with the proof of death, a renewal of a login is free before its own lease ends.
# May run: process.
_END_PROCESS = """
    WITH freed AS (
        UPDATE mcp.grants SET refreshing_until = NULL
        WHERE refreshing_by = $1::uuid AND refreshing_until IS NOT NULL)
    DELETE FROM mcp.gateways WHERE id = $1::uuid
"""
# May run: process.
_OWN = """
    SELECT execution_id, cancel_requested_at IS NOT NULL AS is_cancelled, question_id, answer
    FROM mcp.calls WHERE gateway_id = $1 AND finished_at IS NULL
"""
# May run: process.
_FAIL_ABANDONED_CALLS = f"""
    WITH dead AS (
        DELETE FROM mcp.gateways WHERE lease_expires_at < now()),
    ended AS (
        UPDATE mcp.calls SET finished_at = now(), outcome = 'unknown', reason = 'GATEWAY_LOST',
            message = 'the process that made the call ended; the tool may have run',
            question_id = NULL, question = NULL, answer = NULL
        WHERE finished_at IS NULL AND NOT EXISTS (
            SELECT FROM mcp.gateways g WHERE g.id = gateway_id AND g.lease_expires_at >= now())
        RETURNING *)
    {_RECORD}
"""
# May run: process.
_DROP_OLD_RESULTS = """
    WITH old AS (
        SELECT execution_id FROM mcp.calls
        WHERE acknowledged_at IS NULL AND finished_at < now()
            - CASE WHEN starts_with(caller, $2) THEN $3::interval ELSE $4::interval END
        LIMIT $1 FOR UPDATE SKIP LOCKED),
    dropped AS (
        UPDATE mcp.calls c SET acknowledged_at = now(), parts = NULL
        FROM old WHERE c.execution_id = old.execution_id RETURNING 1)
    SELECT count(*) FROM dropped
"""
# May run: process.
_PRUNE = """
    WITH old AS (
        SELECT execution_id FROM mcp.calls
        WHERE acknowledged_at < now() - $2::interval AND pruned_at IS NULL
        ORDER BY acknowledged_at LIMIT $1 FOR UPDATE SKIP LOCKED),
    pruned AS (
        UPDATE mcp.calls c SET pruned_at = now() FROM old WHERE c.execution_id = old.execution_id
        RETURNING c.caller, c.execution_id),
    kept AS (
        INSERT INTO mcp.tombstones (digest)
        SELECT encode(substring(sha256(convert_to(caller || chr(1) || execution_id, 'UTF8'))
            FOR 16), 'hex')::uuid FROM pruned
        ON CONFLICT DO NOTHING)
    SELECT count(*) FROM pruned
"""
# May run: process.
_DELETE_PRUNED = """
    WITH old AS (
        SELECT execution_id FROM mcp.calls WHERE pruned_at < now() - $2::interval
        LIMIT $1 FOR UPDATE SKIP LOCKED),
    deleted AS (
        DELETE FROM mcp.calls c USING old WHERE c.execution_id = old.execution_id RETURNING 1)
    SELECT count(*) FROM deleted
"""


@dataclass(frozen=True, slots=True)
class LeasedCall:
    """A running call of this process.

    Attributes:
        question_id: What it asks; None if nothing.
        answer: What another process was answered; None if nothing.
    """

    execution_id: str
    is_cancelled: bool
    question_id: str | None = None
    answer: Answer | None = None


class Journal:
    """The journal, as one process writes it.

    Attributes:
        generation: The identity of the journal; a missing call in another journal proves nothing.
        questions: What running calls ask.
    """

    def __init__(
        self,
        database: Database,
        generation: str,
        process_id: str,
        on_pruned: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._database = database
        self._process_id = process_id
        self._on_pruned = on_pruned
        self.generation = generation
        self.questions = CallQuestions(database)
        self._beginning: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # May run: process.
    @classmethod
    async def open(
        cls,
        database: Database,
        process_id: str,
        on_pruned: Callable[[int], None] = lambda _: None,
    ) -> Self:
        """Register this process and return the journal.

        `on_pruned` is called with the number of calls that were replaced by tombstones.
        """
        generation = await database.pool.fetchval("SELECT generation FROM mcp.journal")
        journal = cls(database, generation, process_id, on_pruned)
        await journal.renew()
        return journal

    def check_generation(self, generation: str) -> None:
        """Reject a request for another journal.

        Raises:
            JournalChanged: The generation differs.
        """
        if generation != self.generation:
            raise JournalChanged(self.generation)

    async def find(self, key: CallKey) -> CallRecord | None:
        """Return the call, if it is journaled, and store the owner's epoch.

        Raises:
            StaleOwner: A newer owner has asked before.
            ExecutionIdReused: The id names a call of another caller or chat.
        """
        async with self._for_owner(key) as connection:
            return await _find(connection, key)

    async def is_known(self, key: CallKey) -> bool:
        """Return whether the call is certainly journaled; one that begins now may be missed.

        Raises:
            StaleOwner: A newer owner has asked before.
        """
        digest = tombstone_digest(key.caller, key.execution_id)
        row = await self._database.pool.fetchrow(_PEEK, key.execution_id, digest, key.chat_id)
        assert row is not None
        if key.chat_id and row["owner_epoch"] > key.owner_epoch:
            raise StaleOwner(row["owner_epoch"])
        return bool(row["is_known"])

    async def read(self, execution_id: str) -> CallRecord:
        """Return a call that is certainly journaled."""
        row = await self._database.pool.fetchrow(_READ, execution_id)
        assert row is not None
        return record_of(row)

    async def begin(
        self,
        call_request: CallRequest,
        limits: Limits | None = None,
        server_version: int | None = None,
    ) -> tuple[CallRecord, bool]:
        """Journal a call that is about to be made; return it, and whether it is new.

        Args:
            call_request: The call.
            limits: The limits of calls at once; None if there are none.
            server_version: The version that the server must still have; None for any.

        Raises:
            ServerChanged: The server has another version, or is gone.
            TooManyCalls: The limit of calls at once is reached, over all processes.
            StaleOwner: A newer owner has asked before.
            ExecutionIdReused: The id names a call of another caller, chat or content.
        """
        key = call_request.key
        turn = nullcontext() if limits is None else self._turn(call_request.server_id)
        async with turn, self._for_owner(key) as connection:
            if limits is not None:
                await connection.execute(_LOCK_SERVER, call_request.server_id)
            row = await connection.fetchrow(
                _BEGIN,
                key.execution_id,
                key.caller,
                key.chat_id,
                key.owner_epoch,
                call_request.sha256,
                call_request.server_id,
                call_request.user_id,
                call_request.tool,
                self._process_id,
                tombstone_digest(key.caller, key.execution_id),
                server_version,
            )
            record = await _find(connection, key) if row is None else checked_record(row, key)
            if row is not None and limits is not None:
                check_capacity(row, limits)
        if record is None:
            raise ServerChanged(call_request.server_id)
        check_content(record, call_request)
        return record, row is not None

    def _turn(self, server_id: str) -> AbstractAsyncContextManager[None]:
        """Return the turn of a server's calls to begin: only one connection waits for its lock."""
        return self._beginning.setdefault(server_id, asyncio.Lock())

    async def finish(self, execution_id: str, end: CallEnd) -> CallRecord:
        """Store the end of a call, unless one is stored already; return the stored record."""
        row = await self._database.pool.fetchrow(
            _FINISH,
            execution_id,
            end.outcome,
            end.reason,
            end.message.replace("\0", "")[:1024],
            end.may_have_executed,
            end.retry_after_ms,
            end.original_bytes,
            encode_parts(end.parts),
        )
        return await self.read(execution_id) if row is None else record_of(row)

    async def cancel(self, key: CallKey) -> CallRecord:
        """Request the cancellation of a call; an unknown one is journaled as cancelled.

        Raises:
            StaleOwner: A newer owner has asked before.
            ExecutionIdReused: The id names a call of another caller or chat.
        """
        digest = tombstone_digest(key.caller, key.execution_id)
        values = (key.execution_id, key.caller, key.chat_id, key.owner_epoch, digest)
        async with self._for_owner(key) as connection:
            row = await connection.fetchrow(_INSERT_CANCELLED, *values)
            if row is not None:
                return checked_record(row, key)
            record = await _find(connection, key)
            assert record is not None
            await connection.execute(_ASK_CANCEL, key.execution_id)
        return record

    async def cancel_calls_of(self, server_id: str) -> None:
        """Request the cancellation of all running calls of a server."""
        await self._database.pool.execute(_ASK_CANCEL_OF_SERVER, server_id)

    async def cancel_calls_of_user(self, server_id: str, user_id: str) -> None:
        """Request the cancellation of the running calls that a user makes to a server."""
        await self._database.pool.execute(_ASK_CANCEL_OF_USER, server_id, user_id)

    async def users_calling(self, server_id: str) -> tuple[str, ...]:
        """Return whose calls of a server are running; empty for services themselves."""
        rows = await self._database.pool.fetch(_USERS_CALLING, server_id)
        return tuple(row["user_id"] for row in rows)

    async def has_calls_of(self, server_id: str) -> bool:
        """Return whether any tool of a server was called."""
        return bool(await self._database.pool.fetchval(_HAS_CALLS, server_id))

    async def acknowledge(self, caller: str, execution_ids: Sequence[str]) -> frozenset[str]:
        """Drop the parts of finished calls; return the ids that are acknowledged now."""
        rows = await self._database.pool.fetch(_ACKNOWLEDGE, list(execution_ids), caller)
        acknowledged = frozenset(row["execution_id"] for row in rows)
        rest = {
            tombstone_digest(caller, each): each
            for each in execution_ids
            if each not in acknowledged
        }
        if not rest:
            return acknowledged
        found = await self._database.pool.fetch(_FIND_TOMBSTONES, list(rest))
        return acknowledged | {rest[row["digest"]] for row in found}

    async def renew(self) -> tuple[LeasedCall, ...]:
        """Renew the lease of this process; return its running calls.

        On a connection of its own, so that no load of calls ends the lease.
        """
        pool = self._database.side_pool
        await pool.execute(_RENEW, self._process_id, LEASE)
        rows = await pool.fetch(_OWN, self._process_id)
        return tuple(
            LeasedCall(
                row["execution_id"],
                row["is_cancelled"],
                row["question_id"],
                None if row["answer"] is None else decode_answer(row["answer"]),
            )
            for row in rows
        )

    async def end_process(self, process_id: str) -> None:
        """End the lease of a process that is proven dead, and the renewals of logins it made."""
        await self._database.pool.execute(_END_PROCESS, process_id)

    async def fail_abandoned_calls(self) -> None:
        """End the calls of processes whose lease expired: their outcome is unknown."""
        await self._database.pool.execute(_FAIL_ABANDONED_CALLS)

    async def delete_expired(self) -> bool:
        """Drop results that will not be requested, and delete calls acknowledged some time ago.

        A limited number of each, so that this is quick; returns whether there may be more. Epochs
        of owners are never deleted.
        """
        fetchval, most = self._database.pool.fetchval, PRUNED_AT_ONCE_MAX
        counts = (
            await fetchval(_DELETE_PRUNED, most, PRUNED_ROW_KEPT),
            await fetchval(
                _DROP_OLD_RESULTS, most, TOKEN_PREFIX, TOKEN_RESULTS_KEPT, UNACKNOWLEDGED_KEPT
            ),
            await fetchval(_PRUNE, most, KEPT),
        )
        self._on_pruned(counts[-1])
        return most in counts

    @asynccontextmanager
    async def _for_owner(self, key: CallKey) -> "AsyncIterator[Any]":
        """Yield a connection in a transaction that has stored the owner's epoch.

        Raises:
            StaleOwner: A newer owner has asked before.
        """
        async with self._database.pool.acquire() as connection, connection.transaction():
            if key.chat_id:
                epoch = await connection.fetchval(_STORE_EPOCH, key.chat_id, key.owner_epoch)
                if epoch > key.owner_epoch:
                    raise StaleOwner(epoch)
            yield connection


async def _find(connection: Any, key: CallKey) -> CallRecord | None:
    digest = tombstone_digest(key.caller, key.execution_id)
    row = await connection.fetchrow(_FIND, key.execution_id, digest)
    if row["execution_id"] is not None:
        return checked_record(row, key)
    return tombstone(key) if row["has_tombstone"] else None
