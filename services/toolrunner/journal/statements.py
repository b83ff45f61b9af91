"""Statements of the journal: entries, owners and processes."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import msgspec

from toolrunner.journal.records import Execution, ExecutionState, ProcessRecord
from toolrunner.primitives.domain import ChatId, ProcessId, WorkspaceId
from toolrunner.primitives.errors import ExecutionIdReused, RequestIdReused, StaleOwner


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end; inside another transaction this is a savepoint, which fails by itself.

    A raised epoch is kept even if the rest is refused.
    """
    is_step = connection.in_transaction
    connection.execute("SAVEPOINT step" if is_step else "BEGIN IMMEDIATE")
    is_kept = False
    try:
        yield
        is_kept = True
    except (StaleOwner, ExecutionIdReused, RequestIdReused):
        is_kept = True
        raise
    finally:
        # A full disk may have ended the transaction already.
        if connection.in_transaction:
            _close(connection, is_step=is_step, is_kept=is_kept)


def _close(connection: sqlite3.Connection, *, is_step: bool, is_kept: bool) -> None:
    if is_step:
        if not is_kept:
            connection.execute("ROLLBACK TO step")
        connection.execute("RELEASE step")
        return
    try:
        connection.execute("COMMIT" if is_kept else "ROLLBACK")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def raise_epoch(connection: sqlite3.Connection, chat_id: ChatId, owner_epoch: int) -> None:
    """Store the epoch of a chat's owner.

    Raises:
        StaleOwner: A newer owner of the chat has called.
    """
    row = connection.execute(
        "INSERT INTO owners VALUES (?, ?) ON CONFLICT (chat_id) DO UPDATE"
        " SET highest_epoch = max(highest_epoch, excluded.highest_epoch)"
        " RETURNING highest_epoch",
        (chat_id, owner_epoch),
    ).fetchone()
    if row[0] > owner_epoch:
        raise StaleOwner(owner_epoch, row[0])


def find_execution(
    connection: sqlite3.Connection, *, is_keyed: bool, request_id: str
) -> Execution | None:
    """Return an entry, or None if there is none."""
    row = connection.execute(
        "SELECT request_id, chat_id, method, body_hash, state, process_id, response,"
        " started_at, finished_at FROM executions WHERE is_keyed = ? AND request_id = ?",
        (is_keyed, request_id),
    ).fetchone()
    if row is None:
        return None
    return Execution(
        request_id=row[0],
        chat_id=ChatId(row[1]),
        method=row[2],
        body_hash=row[3],
        state=ExecutionState(row[4]),
        process_id=None if row[5] is None else ProcessId(row[5]),
        response=row[6],
        started_at=datetime.fromisoformat(row[7]),
        finished_at=None if row[8] is None else datetime.fromisoformat(row[8]),
    )


def insert_execution(
    connection: sqlite3.Connection,
    execution: Execution,
    workspace_id: WorkspaceId,
    *,
    is_keyed: bool,
) -> None:
    """Insert an entry."""
    started_at, finished_at = execution.started_at, execution.finished_at
    connection.execute(
        "INSERT INTO executions (is_keyed, request_id, chat_id, method, body_hash, state,"
        " process_id, response, started_at, finished_at, workspace_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            is_keyed,
            execution.request_id,
            execution.chat_id,
            execution.method,
            execution.body_hash,
            execution.state,
            execution.process_id,
            execution.response,
            None if started_at is None else started_at.isoformat(),
            None if finished_at is None else finished_at.isoformat(),
            workspace_id,
        ),
    )


def put_process(connection: sqlite3.Connection, process: ProcessRecord) -> None:
    """Store a process; a final state is not overwritten, except for the output of an exited one."""
    connection.execute(
        "INSERT INTO processes VALUES (?, ?, ?, ?)"
        " ON CONFLICT (process_id) DO UPDATE SET state = excluded.state, record = excluded.record"
        " WHERE processes.state IN ('starting', 'running')"
        " OR (processes.state = 'exited' AND excluded.state = 'exited')",
        (process.process_id, process.workspace_id, process.state, msgspec.json.encode(process)),
    )


def decode_process(record: bytes) -> ProcessRecord:
    """Decode the record of a process."""
    return msgspec.json.decode(record, type=ProcessRecord)
