"""Checks all invariants on one snapshot of a database, read-only."""

from collections import Counter, defaultdict
from collections.abc import Collection

import asyncpg

from chatd.audit.finding import IDS_MAX, Finding
from chatd.audit.histories import HISTORY_INVARIANTS
from chatd.audit.invariants import SQL_INVARIANTS, SqlInvariant
from chatd.audit.liveness import LIVE_INVARIANTS
from chatd.audit.reading import read_chats
from chatd.audit.sealed_values import check_sealed_values
from chatd.schema import SCHEMA, metadata
from parley.postgres import Session, SessionLimits, typed_outages

CLOSING_S_MAX = 5.0
#: A large database takes long, and the auditor holds no locks that block other sessions.
LIMITS = SessionLimits(statement_timeout_s=0, idle_in_transaction_timeout_s=300)

READABLE = "stored_values_can_be_read"
READABLE_SENTENCE = "Every stored state, message, queued message and result can be read."

# May run: process.
SELECT_COLUMNS = """
    SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = $1
"""
OFFENDERS = """
    SELECT id, count(*) OVER () AS count FROM ({sql}) AS offending (id)
    ORDER BY id LIMIT {ids_max}
"""


class WrongDatabase(Exception):
    """The database has no chat tables, or those of another version.

    Attributes:
        missing: Columns that were not found, as `table.column`.
    """

    def __init__(self, missing: tuple[str, ...]) -> None:
        named = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        super().__init__(
            f"the role finds no {named} in the schema {SCHEMA!r} of this database; name the "
            "database of chatd, migrated by this version of Parley, with a role that may read it"
        )
        self.missing = missing


async def audit(
    url: str, *, is_live: bool = False, key_ids: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Check a database in one read-only transaction and return a finding per invariant.

    Args:
        url: The database.
        is_live: Check also the invariants that hold while services run on it.
        key_ids: The master keys of its keyring; None if that is not at hand.

    Raises:
        WrongDatabase: it does not hold the tables of chats.
        DatabaseError: it cannot be reached or refuses the role.
    """
    connection = await Session(url, "chatd audit", LIMITS).open()
    try:
        with typed_outages():
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await _require_tables(connection)
                queries = SQL_INVARIANTS + (LIVE_INVARIANTS if is_live else ())
                found = [await _ask(connection, invariant) for invariant in queries]
                sealed = await check_sealed_values(connection, key_ids)
                return (*found, sealed, *await _walk(connection))
    finally:
        await connection.close(timeout=CLOSING_S_MAX)


async def _require_tables(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    found = {row[0] for row in await connection.fetch(SELECT_COLUMNS, SCHEMA)}
    needed = (
        f"{table.name}.{column.name}" for table in metadata.sorted_tables for column in table.c
    )
    missing = tuple(name for name in needed if name not in found)
    if missing:
        raise WrongDatabase(missing)


# May run: process.
async def _ask(
    connection: "asyncpg.Connection[asyncpg.Record]", invariant: SqlInvariant
) -> Finding:
    rows = await connection.fetch(OFFENDERS.format(sql=invariant.sql, ids_max=IDS_MAX))
    count = rows[0]["count"] if rows else 0
    return Finding(invariant.name, invariant.sentence, count, tuple(row["id"] for row in rows))


async def _walk(connection: "asyncpg.Connection[asyncpg.Record]") -> tuple[Finding, ...]:
    """Check the invariants that need whole chats; each chat is read once."""
    counts: Counter[str] = Counter()
    ids: dict[str, list[str]] = defaultdict(list)

    def note(name: str, offender: str) -> None:
        counts[name] += 1
        if len(ids[name]) < IDS_MAX:
            ids[name].append(offender)

    async for read in read_chats(connection):
        for offender in read.unreadable:
            note(READABLE, offender)
        for chat in read.chats:
            for invariant in HISTORY_INVARIANTS:
                for offender in invariant.check(chat):
                    note(invariant.name, offender)
    sentences = {READABLE: READABLE_SENTENCE}
    sentences |= {invariant.name: invariant.sentence for invariant in HISTORY_INVARIANTS}
    return tuple(
        Finding(name, sentence, counts[name], tuple(ids[name]))
        for name, sentence in sentences.items()
    )
