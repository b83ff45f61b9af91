"""Tombstones: what is kept of an execution id after its entry was deleted, so that it never runs.

A tombstone is 16 bytes of the id's hash and the number of its workspace. It outlives everything but
the workspace: a caller that restored an older database may ask for the id again.
"""

import hashlib
import sqlite3
from collections.abc import Iterable

from toolrunner.journal.records import Execution, ExecutionState, Key
from toolrunner.primitives.domain import NO_WORKSPACE, WorkspaceId

_DIGEST_BYTES = 16


def add_tombstones(
    connection: sqlite3.Connection, executions: Iterable[tuple[str, WorkspaceId]]
) -> None:
    """Store tombstones of execution ids, each with its workspace."""
    numbers: dict[WorkspaceId, int] = {}
    for execution_id, workspace_id in executions:
        if workspace_id not in numbers:
            numbers[workspace_id] = _number(connection, workspace_id)
        connection.execute(
            "INSERT INTO tombstones VALUES (?, ?) ON CONFLICT DO NOTHING",
            (_digest(execution_id), numbers[workspace_id]),
        )


def has_tombstone(connection: sqlite3.Connection, execution_id: str) -> bool:
    """Return whether an execution id was deleted."""
    found = connection.execute(
        "SELECT 1 FROM tombstones WHERE digest = ?", (_digest(execution_id),)
    ).fetchone()
    return found is not None


def find_tombstone(connection: sqlite3.Connection, key: Key) -> Execution | None:
    """Return what is known of a deleted entry; None if there never was one."""
    if not has_tombstone(connection, key.execution_id):
        return None
    return Execution(
        request_id=key.execution_id,
        chat_id=key.chat_id,
        method="",
        body_hash=b"",
        state=ExecutionState.ACKNOWLEDGED,
        process_id=None,
        response=b"",
        started_at=None,
        finished_at=None,
    )


def workspaces_of_tombstones(connection: sqlite3.Connection) -> tuple[WorkspaceId, ...]:
    """Return the workspaces that have tombstones."""
    rows = connection.execute(
        "SELECT workspace_id FROM tombstone_workspaces WHERE workspace_id <> ?", (NO_WORKSPACE,)
    )
    return tuple(WorkspaceId(row[0]) for row in rows)


def drop_tombstones(connection: sqlite3.Connection, workspace_id: WorkspaceId) -> None:
    """Delete the tombstones of a workspace that was removed."""
    connection.execute(
        "DELETE FROM tombstones WHERE workspace ="
        " (SELECT number FROM tombstone_workspaces WHERE workspace_id = ?)",
        (workspace_id,),
    )
    connection.execute("DELETE FROM tombstone_workspaces WHERE workspace_id = ?", (workspace_id,))


def _number(connection: sqlite3.Connection, workspace_id: WorkspaceId) -> int:
    connection.execute(
        "INSERT INTO tombstone_workspaces (workspace_id) VALUES (?) ON CONFLICT DO NOTHING",
        (workspace_id,),
    )
    number: int = connection.execute(
        "SELECT number FROM tombstone_workspaces WHERE workspace_id = ?", (workspace_id,)
    ).fetchone()[0]
    return number


def _digest(execution_id: str) -> bytes:
    return hashlib.sha256(execution_id.encode()).digest()[:_DIGEST_BYTES]
