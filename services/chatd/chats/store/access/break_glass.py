"""Break-glass accesses in PostgreSQL: who may read whose chats, why and until when."""

from datetime import timedelta

import asyncpg

from chatd.chats.domain.break_glass import AccessPlace, BreakGlassAccess, reason_digest
from chatd.primitives.domain.errors import RequestIdReused, ResourceNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.primitives.store.audit_outbox import record_event
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Pool

RESOURCE = "break-glass access"

IS_OPEN = "access.ended_at IS NULL AND access.expires_at > clock_timestamp()"
_COLUMNS = f"""access.id, access.administrator_id, access.owner_id, access.reason,
    access.opened_at, access.expires_at, access.ended_at, {IS_OPEN} AS is_open"""

# An access of the caller; an existing id is a repeated request.
# May run: administrator.
INSERT = f"""
    INSERT INTO chat.break_glass AS access (id, administrator_id, owner_id, reason, request_hash,
        opened_at, expires_at, changed_xid)
    VALUES ($1, $2, $3, $4, $5, now(), now() + $6::interval, pg_current_xact_id())
    ON CONFLICT (id) DO NOTHING RETURNING {_COLUMNS}
"""
# May run: administrator.
SELECT_ONE = f"""
    SELECT {_COLUMNS}, access.request_hash FROM chat.break_glass access WHERE access.id = $1
"""
# May run: administrator.
END = f"""
    UPDATE chat.break_glass AS access SET ended_at = clock_timestamp(),
        changed_xid = pg_current_xact_id()
    WHERE access.id = $1 AND {IS_OPEN} RETURNING {_COLUMNS}
"""
# Accesses to the chats of one user or of all, newest first.
# May run: owner, administrator.
SELECT_PAGE = f"""
    SELECT {_COLUMNS} FROM chat.break_glass access
    WHERE ($1::uuid IS NULL OR access.owner_id = $1) AND ($2 OR {IS_OPEN})
        AND ($3::timestamptz IS NULL OR (access.opened_at, access.id) < ($3, $4::uuid))
    ORDER BY access.opened_at DESC, access.id DESC LIMIT $5
"""
# Whether the caller has an open access to the chats of a user.
# May run: administrator.
SELECT_OPEN = f"""
    SELECT EXISTS (SELECT 1 FROM chat.break_glass access
        WHERE access.administrator_id = $1 AND access.owner_id = $2 AND {IS_OPEN})
"""
# The first read of a chat by an access of the caller, to chats of others.
# May run: administrator.
INSERT_READ = f"""
    INSERT INTO chat.break_glass_reads (access_id, chat_id)
    SELECT access.id, c.id FROM chat.chats c
    JOIN chat.break_glass access ON access.owner_id = c.owner_id
    WHERE c.id = $1 AND access.administrator_id = $2 AND {IS_OPEN}
    ON CONFLICT DO NOTHING RETURNING access_id,
        (SELECT owner_id FROM chat.chats WHERE id = $1) AS owner_id
"""


class BreakGlass:
    """Stores accesses; every change is in the audit log."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def open(
        self,
        access_id: str,
        *,
        administrator_id: OwnerId,
        owner_id: OwnerId,
        reason: str,
        duration: timedelta,
        request_hash: bytes,
    ) -> BreakGlassAccess:
        """Store an access, or return the one that the same request stored.

        Raises:
            RequestIdReused: The request id was used for another body.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(
                INSERT, access_id, administrator_id, owner_id, reason, request_hash, duration
            )
            if row is not None:
                details = {
                    "reason_sha256": reason_digest(access_id, reason),
                    "expires_at": row["expires_at"].isoformat(),
                }
                event = AuditEvent(
                    AuditAction.BREAK_GLASS_OPENED, access_id, owner_id, details=details
                )
                await record_event(connection, event)
                return access_of(row)
            row = await connection.fetchrow(SELECT_ONE, access_id)
            if row is None or row["request_hash"] != request_hash:
                raise RequestIdReused(access_id)
            return access_of(row)

    async def end(self, access_id: str) -> BreakGlassAccess:
        """End an access; one that is over stays as it is.

        Raises:
            ResourceNotFound: There is none.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(END, access_id)
            if row is not None:
                ended = access_of(row)
                event = AuditEvent(AuditAction.BREAK_GLASS_ENDED, access_id, ended.owner_id)
                await record_event(connection, event)
                return ended
            row = await connection.fetchrow(SELECT_ONE, access_id)
            if row is None:
                raise ResourceNotFound(RESOURCE, access_id)
            return access_of(row)

    async def page(
        self,
        owner_id: OwnerId | None,
        *,
        include_ended: bool,
        after: AccessPlace | None,
        length: int,
    ) -> tuple[BreakGlassAccess, ...]:
        """Return accesses to the chats of one user, or of all, newest first."""
        place = (None, None) if after is None else (after.opened_at, after.id)
        rows = await self._pool.fetch(SELECT_PAGE, owner_id, include_ended, *place, length)
        return tuple(map(access_of, rows))

    async def is_open(self, administrator_id: OwnerId, owner_id: OwnerId) -> bool:
        """Return whether an administrator has an open access to the chats of a user."""
        found: bool = await self._pool.fetchval(SELECT_OPEN, administrator_id, owner_id)
        return found

    async def record_read(self, chat_id: ChatId, reader: Reader) -> None:
        """Record that an administrator reads a chat of another, once for each access and chat."""
        async with self._pool.acquire() as connection, connection.transaction():
            for row in await connection.fetch(INSERT_READ, chat_id, reader.id):
                details = {"chat_id": chat_id}
                event = AuditEvent(
                    AuditAction.BREAK_GLASS_READ,
                    str(row["access_id"]),
                    str(row["owner_id"]),
                    reader.id,
                    details,
                )
                await record_event(connection, event)


def access_of(row: asyncpg.Record) -> BreakGlassAccess:
    """Return an access from its row."""
    return BreakGlassAccess(
        str(row["id"]),
        OwnerId(str(row["administrator_id"])),
        OwnerId(str(row["owner_id"])),
        row["reason"],
        row["opened_at"],
        row["expires_at"],
        row["ended_at"],
        row["is_open"],
    )
