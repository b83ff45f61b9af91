"""Exports of accounts and their files, in PostgreSQL."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg
from sqlalchemy import text

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Database

COLUMNS = """
    e.id, e.user_id, e.requested_by_user_id, e.created_at, e.completed_at, e.expires_at, e.failure,
    (SELECT count(*) FROM identity.account_export_entries WHERE export_id = e.id) AS entries,
    (SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM (
        SELECT data FROM identity.account_export_entries WHERE export_id = e.id
        UNION ALL SELECT data FROM identity.account_export_parts WHERE export_id = e.id
    ) AS stored) AS size_bytes
"""

# A new export takes the place of those that ended; while one runs, nothing is inserted.
ADD = text("""
    INSERT INTO identity.account_exports
        (id, user_id, requested_by_user_id, created_at, claimed_until)
    VALUES (CAST(:id AS uuid), CAST(:user_id AS uuid), CAST(:requested_by AS uuid),
        CAST(:now AS timestamptz), CAST(:now AS timestamptz))
    ON CONFLICT (user_id) WHERE completed_at IS NULL DO NOTHING
    RETURNING id
""")
REPLACE = text("""
    DELETE FROM identity.account_exports
    WHERE user_id = CAST(:user_id AS uuid) AND completed_at IS NOT NULL
""")
# May run: owner, administrator.
LIST = f"""
    SELECT {COLUMNS} FROM identity.account_exports e
    WHERE e.user_id = $1 AND coalesce(e.expires_at > $2, true) ORDER BY e.created_at DESC
"""
# The oldest export that no gateway makes.
# May run: process.
CLAIM = """
    UPDATE identity.account_exports SET claimed_until = $2 WHERE id = (
        SELECT id FROM identity.account_exports
        WHERE completed_at IS NULL AND claimed_until <= $1
        ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, user_id, claimed_until
"""
# Only the gateway that has the claim writes, and each write prolongs the claim.
# May run: process.
HOLD = """
    UPDATE identity.account_exports SET claimed_until = $3
    WHERE id = $1 AND claimed_until = $2 AND completed_at IS NULL RETURNING claimed_until
"""
# What an attempt before left of the file, from this part on.
# May run: process.
CUT = """
    DELETE FROM identity.account_export_parts WHERE export_id = $1 AND name = $2 AND part >= $3
"""
# May run: process.
PUT_PART = """
    INSERT INTO identity.account_export_parts (export_id, name, part, data) VALUES ($1, $2, $3, $4)
"""
# The last part of a file, by which it is whole.
# May run: process.
PUT = """
    INSERT INTO identity.account_export_entries (export_id, name, sha256, data)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (export_id, name) DO UPDATE SET sha256 = excluded.sha256, data = excluded.data
"""
# May run: process.
COMPLETE = """
    UPDATE identity.account_exports SET completed_at = $3, expires_at = $4, failure = $5
    WHERE id = $1 AND claimed_until = $2 AND completed_at IS NULL RETURNING id
"""
# May run: process, checked by LIST.
NAMES = """
    SELECT entry.name, entry.sha256, count(part.part) AS parts_before,
        octet_length(entry.data) + coalesce(sum(octet_length(part.data)), 0)::bigint AS size_bytes
    FROM identity.account_export_entries AS entry
    LEFT JOIN identity.account_export_parts AS part
        ON part.export_id = entry.export_id AND part.name = entry.name
    WHERE entry.export_id = $1 GROUP BY entry.export_id, entry.name ORDER BY entry.name
"""
# May run: checked by LIST.
READ = "SELECT data FROM identity.account_export_entries WHERE export_id = $1 AND name = $2"
# May run: checked by LIST.
READ_PART = """
    SELECT data FROM identity.account_export_parts
    WHERE export_id = $1 AND name = $2 AND part = $3
"""
# May run: process.
DELETE_EXPIRED = "DELETE FROM identity.account_exports WHERE expires_at <= $1"


@dataclass(frozen=True, slots=True)
class ExportRecord:
    """An export.

    Attributes:
        completed_at: When it was complete or had failed.
        failure: Why it failed; empty unless it did.
    """

    id: str
    user_id: str
    requested_by_user_id: str
    created_at: datetime
    completed_at: datetime | None
    expires_at: datetime | None
    entries: int
    size_bytes: int
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ExportClaim:
    """The right of one gateway to make an export, until a time."""

    export_id: str
    user_id: str
    until: datetime


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part of a file of an archive.

    Attributes:
        name: The name of the file.
        part: The number of the part, from 0.
        sha256: The digest of the whole file in its last part, None in those before.
        data: The bytes of the part.
    """

    name: str
    part: int
    sha256: bytes | None
    data: bytes


@dataclass(frozen=True, slots=True)
class ExportEntry:
    """A file of an archive, without its bytes.

    Attributes:
        name: Its name.
        sha256: The digest of all of it.
        size_bytes: Its size.
        parts_before: How many parts come before the last one.
    """

    name: str
    sha256: bytes
    size_bytes: int
    parts_before: int


class ClaimLost(Exception):
    """Another gateway makes the export, or it was deleted."""


class ExportStore:
    """The part of the schema `identity` for exports."""

    def __init__(self, database: Database, audit_log: AuditLog = UNSEALED) -> None:
        self._database = database
        self._pool = database.pool
        self._audit_log = audit_log

    # May run: owner, administrator.
    async def add(self, export_id: str, user_id: str, requested_by: str, now: datetime) -> None:
        """Begin an export, unless one of the user runs."""
        asked = {"id": export_id, "user_id": user_id, "requested_by": requested_by, "now": now}
        async with self._database.transaction() as connection:
            if await connection.scalar(ADD, asked) is None:
                return
            await connection.execute(REPLACE, {"user_id": user_id})
            event = AuditEvent(
                AuditAction.ACCOUNT_EXPORT_REQUESTED, export_id, user_id, requested_by
            )
            await self._audit_log.append(connection, event)

    async def list(self, user_id: str, now: datetime) -> Sequence[ExportRecord]:
        """Return the exports of a user that have not expired, newest first."""
        return tuple(_record(row) for row in await self._pool.fetch(LIST, user_id, now))

    async def claim(self, now: datetime, lease: timedelta) -> ExportClaim | None:
        """Claim an export that no gateway makes."""
        row = await self._pool.fetchrow(CLAIM, now, now + lease)
        if row is None:
            return None
        return ExportClaim(str(row["id"]), str(row["user_id"]), row["claimed_until"])

    async def put(self, claim: ExportClaim, stored: StoredPart, until: datetime) -> ExportClaim:
        """Store a part of a file, in place of it and all behind it, and prolong the claim.

        Raises:
            ClaimLost: The claim is not held any more; nothing was stored.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(HOLD, claim.export_id, claim.until, until) is None:
                raise ClaimLost
            place = (claim.export_id, stored.name, stored.part)
            await connection.execute(CUT, *place)
            if stored.sha256 is None:
                await connection.execute(PUT_PART, *place, stored.data)
            else:
                await connection.execute(PUT, *place[:2], stored.sha256, stored.data)
        return ExportClaim(claim.export_id, claim.user_id, until)

    async def prolong(self, claim: ExportClaim, until: datetime) -> ExportClaim:
        """Prolong the claim.

        Raises:
            ClaimLost: The claim is not held any more.
        """
        if await self._pool.fetchval(HOLD, claim.export_id, claim.until, until) is None:
            raise ClaimLost
        return ExportClaim(claim.export_id, claim.user_id, until)

    async def complete(
        self, claim: ExportClaim, now: datetime, expires_at: datetime, failure: str = ""
    ) -> None:
        """Mark an export as complete, or as failed with the reason.

        Raises:
            ClaimLost: The claim is not held any more.
        """
        arguments = (claim.export_id, claim.until, now, expires_at, failure)
        if await self._pool.fetchval(COMPLETE, *arguments) is None:
            raise ClaimLost

    async def entries(self, export_id: str) -> Sequence[ExportEntry]:
        """Return the files of an archive in the order of their names."""
        rows = await self._pool.fetch(NAMES, export_id)
        return tuple(
            ExportEntry(row["name"], row["sha256"], row["size_bytes"], row["parts_before"])
            for row in rows
        )

    async def parts(self, export_id: str, entry: ExportEntry) -> AsyncIterator[bytes | None]:
        """Yield the bytes of a file; None if the export is gone."""
        for part in range(entry.parts_before):
            yield await self._pool.fetchval(READ_PART, export_id, entry.name, part)
        yield await self._pool.fetchval(READ, export_id, entry.name)

    async def delete_expired(self, now: datetime) -> None:
        """Delete exports whose time is over."""
        await self._pool.execute(DELETE_EXPIRED, now)


def _record(row: asyncpg.Record) -> ExportRecord:
    return ExportRecord(
        id=str(row["id"]),
        user_id=str(row["user_id"]),
        requested_by_user_id=str(row["requested_by_user_id"]),
        created_at=row["created_at"],
        completed_at=row["completed_at"],
        expires_at=row["expires_at"],
        entries=row["entries"],
        size_bytes=row["size_bytes"],
        failure=row["failure"],
    )
