"""The journal's file: tables, lock, sync mode, and recovery at startup."""

import sqlite3
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import structs

from toolrunner.journal.records import LIVE, ExecutionState, LostReason, ProcessState
from toolrunner.journal.statements import decode_process, put_process, transaction
from toolrunner.primitives.domain import ProcessId
from toolrunner.primitives.errors import JournalUnusable

SCHEMA_VERSION: Final = 3
#: The size at which SQLite restarts its write-ahead log.
_LOG_BYTES: Final = 4 * 1024 * 1024
_SMALL_CACHE_PAGES: Final = 16
#: More free space than this is given back when the file is opened.
FREE_BYTES_MAX: Final = 32 * 1024 * 1024

_SCHEMA: Final = """
CREATE TABLE journal (generation TEXT NOT NULL, boot_id TEXT NOT NULL);
CREATE TABLE owners (chat_id TEXT PRIMARY KEY, highest_epoch INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE executions (
    is_keyed INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    method TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    state TEXT NOT NULL,
    process_id TEXT,
    response BLOB NOT NULL DEFAULT x'',
    started_at TEXT NOT NULL,
    finished_at TEXT,
    PRIMARY KEY (is_keyed, request_id)
) WITHOUT ROWID;
CREATE INDEX executions_state ON executions (state);
CREATE TABLE processes (
    process_id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    state TEXT NOT NULL,
    record BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX processes_workspace ON processes (workspace_id, state);
CREATE INDEX processes_state ON processes (state);
"""

#: Migrations from each version to the next.
_STEPS: Final = (
    """
ALTER TABLE executions ADD COLUMN acknowledged_at TEXT;
CREATE INDEX executions_process ON executions (process_id);
""",
    """
ALTER TABLE executions ADD COLUMN workspace_id TEXT NOT NULL DEFAULT '';
UPDATE executions SET state = 'acknowledged' WHERE acknowledged_at IS NOT NULL;
CREATE TABLE tombstone_workspaces (
    number INTEGER PRIMARY KEY, workspace_id TEXT NOT NULL UNIQUE
);
CREATE TABLE tombstones (digest BLOB PRIMARY KEY, workspace INTEGER NOT NULL) WITHOUT ROWID;
""",
)


def open_file(
    path: Path,
    *,
    new_generation: str,
    boot_id: str,
    now: datetime,
    adopted: Collection[ProcessId],
) -> tuple[sqlite3.Connection, str, frozenset[ProcessId]]:
    """Open or create the file, and settle the entries that an earlier process left open.

    Returns the connection, the generation, and the processes that are lost from now on.

    Args:
        path: The file.
        new_generation: Its generation if it is created now.
        boot_id: Identifies the boot of the machine.
        now: The time of the entries.
        adopted: Processes that outlived the earlier process, and so are not lost.

    Raises:
        JournalUnusable: Another process has it, or it cannot be read or written.
    """
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        _prepare(connection, path)
        with transaction(connection):
            generation = _generation(connection, new_generation, boot_id)
            lost = _settle(connection, boot_id=boot_id, now=now, adopted=frozenset(adopted))
        _give_back_free_space(connection)
        _lengthen_log(connection)
    except (sqlite3.Error, JournalUnusable) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, JournalUnusable):
            raise
        raise JournalUnusable(path, _remedy(error)) from error
    return connection, generation, lost


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # Exclusive before the first access: the lock is then held until the file is closed.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # Deleted entries are overwritten: they have commands and output of users.
    connection.execute("PRAGMA secure_delete = ON")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise JournalUnusable(path, "it was written by a newer Parley; run that one")


def _give_back_free_space(connection: sqlite3.Connection) -> None:
    """Rewrite a file that is mostly empty; one that cannot be rewritten now stays as it is."""
    pages, free, page_bytes = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    if free * page_bytes > FREE_BYTES_MAX and 2 * free > pages:
        with suppress(sqlite3.OperationalError):  # For example, the disk is nearly full.
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def empty_log(connection: sqlite3.Connection) -> None:
    """Remove old versions of entries from the write-ahead log."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    _lengthen_log(connection)


def _lengthen_log(connection: sqlite3.Connection) -> None:
    """Extend the write-ahead log to its full length, by a transaction that is rolled back.

    The sync of a file that does not grow writes only the data, which takes a fraction of the time.
    Pages that do not fit into the cache are written to the log before the commit.
    """
    pages = connection.execute("PRAGMA cache_size").fetchone()[0]
    connection.execute(f"PRAGMA cache_size = {_SMALL_CACHE_PAGES}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TABLE filler (filling BLOB)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(?))", (_LOG_BYTES,))
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute(f"PRAGMA cache_size = {pages}")


def _generation(connection: sqlite3.Connection, new_generation: str, boot_id: str) -> str:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        _execute_all(connection, _SCHEMA)
        connection.execute("INSERT INTO journal VALUES (?, ?)", (new_generation, boot_id))
    for step in _STEPS[max(0, version - 1) :]:
        _execute_all(connection, step)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    generation: str = connection.execute("SELECT generation FROM journal").fetchone()[0]
    return generation


def _execute_all(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";"):
        connection.execute(statement)


def _settle(
    connection: sqlite3.Connection, *, boot_id: str, now: datetime, adopted: frozenset[ProcessId]
) -> frozenset[ProcessId]:
    """Mark everything that was left open as unknown or lost."""
    started = connection.execute(
        "SELECT is_keyed, request_id, process_id FROM executions WHERE state = ?",
        (ExecutionState.STARTED,),
    ).fetchall()
    for is_keyed, request_id, process_id in started:
        if process_id not in adopted:
            connection.execute(
                "UPDATE executions SET state = ? WHERE is_keyed = ? AND request_id = ?",
                (ExecutionState.UNKNOWN, is_keyed, request_id),
            )
    old_boot_id = connection.execute("SELECT boot_id FROM journal").fetchone()[0]
    gone = LostReason.RUNNER_RESTARTED if boot_id == old_boot_id else LostReason.MACHINE_RESTARTED
    rows = connection.execute(
        "SELECT record FROM processes WHERE state IN (?, ?)", tuple(sorted(LIVE))
    ).fetchall()
    gone_now = set()
    for record in map(decode_process, (row[0] for row in rows)):
        if record.process_id in adopted:
            continue
        gone_now.add(record.process_id)
        is_uncertain = record.state is ProcessState.STARTING
        reason = LostReason.START_UNCERTAIN if is_uncertain else gone
        lost = structs.replace(record, state=ProcessState.LOST, lost_reason=reason, ended_at=now)
        put_process(connection, lost)
    connection.execute("UPDATE journal SET boot_id = ?", (boot_id,))
    return frozenset(gone_now)


def _remedy(error: sqlite3.Error) -> str:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return "another toolrunner has it open; give each its own data directory"
    if isinstance(error, sqlite3.OperationalError):
        return f"{error}; check that the directory can be written and has room"
    return f"{error}; move it away to begin a new one, and open calls count as unknown"
