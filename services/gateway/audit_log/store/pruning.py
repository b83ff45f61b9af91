"""Deletes the oldest entries of the audit log; a checkpoint for them is signed before."""

from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import AuditLog
from gateway.audit_log.store.tables import audit_addresses, audit_entries, audit_head
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Database

#: Entries of one checkpoint. The head is locked while they are deleted, and sign-ins wait for it.
PRUNED_MAX: Final = 2_000

# By the clock of the database, which entries of this service have their time from. The newest entry
# is kept, so that the log is never empty.
# May run: process.
SELECT_OLDEST = """
    SELECT entry.seq, entry.hash,
        entry.seq < head.seq AND entry.at < clock_timestamp() - make_interval(days => $1) AS is_old
    FROM identity.audit_entries AS entry, identity.audit_head AS head
    ORDER BY entry.seq LIMIT $2
"""
# May run: administrator.
COUNT_OLD = """
    SELECT count(*) AS entries, coalesce(max(seq), 0) AS seq FROM identity.audit_entries
    WHERE seq < least(
        (SELECT min(seq) FROM identity.audit_entries
            WHERE at >= clock_timestamp() - make_interval(days => $1)),
        (SELECT seq FROM identity.audit_head))
"""


@dataclass(frozen=True, slots=True)
class OldEntries:
    """The oldest entries, up to the first one that is kept.

    Attributes:
        entries: How many there are.
        seq: The number of the last one; 0 if there are none.
    """

    entries: int
    seq: int


@dataclass(frozen=True, slots=True)
class NextPruning:
    """The entries that one checkpoint is signed for.

    Attributes:
        first_seq: The number of the oldest entry.
        until_seq: The number of the last entry to prune.
        until_hash: The hash of that one.
    """

    first_seq: int
    until_seq: int
    until_hash: bytes


class PruningStore:
    """Finds and deletes old entries."""

    def __init__(self, database: Database, audit_log: AuditLog) -> None:
        self._database = database
        self._audit_log = audit_log

    async def oldest(self, days: int) -> NextPruning | None:
        """Return which entries to prune next; None if there are none."""
        rows = await self._database.pool.fetch(SELECT_OLDEST, days, PRUNED_MAX)
        old = list(takewhile(lambda row: row["is_old"], rows))
        return NextPruning(old[0]["seq"], old[-1]["seq"], old[-1]["hash"]) if old else None

    async def count(self, days: int) -> OldEntries:
        """Return what is older than so many days."""
        row = await self._database.pool.fetchrow(COUNT_OLD, days)
        assert row is not None  # An aggregate has one row.
        return OldEntries(row["entries"], row["seq"])

    async def delete(self, until_seq: int) -> None:
        """Delete the entries up to a number, with their addresses, and record it."""
        async with self._database.transaction() as connection:
            entries = await _delete(connection, until_seq)
            if entries:
                details = {"until_seq": str(until_seq), "entries": str(entries)}
                event = AuditEvent(AuditAction.AUDIT_LOG_PRUNED, details=details)
                await self._audit_log.append(connection, event)


# May run: process.
async def _delete(connection: AsyncConnection, until_seq: int) -> int:
    # The head first, as everyone else who appends and deletes addresses.
    await connection.execute(select(audit_head.c.seq).with_for_update())
    await connection.execute(select(func.set_config("parley.prunes_audit_log", "on", True)))
    await connection.execute(delete(audit_addresses).where(audit_addresses.c.seq <= until_seq))
    deleted = await connection.execute(
        delete(audit_entries).where(audit_entries.c.seq <= until_seq)
    )
    return deleted.rowcount
