"""Retention of the journal: acknowledged responses, old entries and old processes are deleted."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from toolrunner.journal.records import ExecutionState
from toolrunner.journal.statements import transaction
from toolrunner.journal.tombstones import (
    add_tombstones,
    drop_tombstones,
    has_tombstone,
    workspaces_of_tombstones,
)
from toolrunner.primitives.domain import ProcessId, WorkspaceId

_OLD_PROCESSES: Final = """
SELECT workspace_id, process_id, is_open, place FROM (
    SELECT workspace_id, process_id, ended_at,
        row_number() OVER (PARTITION BY workspace_id ORDER BY ended_at DESC) AS place,
        EXISTS (
            SELECT 1 FROM executions
            WHERE executions.process_id = finished.process_id
                AND is_keyed AND acknowledged_at IS NULL
        ) AS is_open
    FROM (
        SELECT workspace_id, process_id,
            json_extract(CAST(record AS TEXT), '$.ended_at') AS ended_at
        FROM processes WHERE state IN ('exited', 'start_failed', 'lost')
    ) AS finished
) WHERE ended_at < :ended_before OR place > :kept_max
"""


def drop_responses(
    connection: sqlite3.Connection, execution_ids: Sequence[str], *, now: datetime
) -> tuple[str, ...]:
    """Drop the responses of completed entries; return the ids of the others."""
    skipped = []
    with transaction(connection):
        for execution_id in execution_ids:
            dropped = connection.execute(
                "UPDATE executions SET response = x'', state = ?,"
                " acknowledged_at = coalesce(acknowledged_at, ?)"
                " WHERE is_keyed AND request_id = ? AND state <> ?",
                (
                    ExecutionState.ACKNOWLEDGED,
                    now.isoformat(),
                    execution_id,
                    ExecutionState.STARTED,
                ),
            )
            if dropped.rowcount == 0 and not has_tombstone(connection, execution_id):
                skipped.append(execution_id)
    return tuple(skipped)


def prune(
    connection: sqlite3.Connection,
    *,
    acknowledged_before: datetime,
    finished_before: datetime,
    at_once_max: int,
) -> int:
    """Replace old entries by tombstones; return how many (see `Journal.prune`)."""
    with transaction(connection):
        old = connection.execute(
            "SELECT is_keyed, request_id, workspace_id FROM executions"
            " WHERE acknowledged_at < ?"
            " OR (state <> ? AND coalesce(finished_at, started_at) < ?) LIMIT ?",
            (
                acknowledged_before.isoformat(),
                ExecutionState.STARTED,
                finished_before.isoformat(),
                at_once_max,
            ),
        ).fetchall()
        add_tombstones(
            connection,
            [(request_id, workspace_id) for is_keyed, request_id, workspace_id in old if is_keyed],
        )
        connection.executemany(
            "DELETE FROM executions WHERE is_keyed = ? AND request_id = ?",
            [(is_keyed, request_id) for is_keyed, request_id, _ in old],
        )
    return len(old)


def recorded_workspaces(
    connection: sqlite3.Connection, finished_before: datetime
) -> tuple[WorkspaceId, ...]:
    """Return the workspaces with tombstones, or with entries or processes that ended before then.

    A process that runs while its workspace is removed ends after its entries were deleted.
    """
    rows = connection.execute(
        "SELECT workspace_id FROM executions WHERE workspace_id <> '' AND finished_at < :before"
        " UNION SELECT workspace_id FROM processes"
        " WHERE state IN ('exited', 'start_failed', 'lost')"
        " AND json_extract(CAST(record AS TEXT), '$.ended_at') < :before",
        {"before": finished_before.isoformat()},
    )
    found = {WorkspaceId(row[0]) for row in rows}
    return tuple(sorted(found.union(workspaces_of_tombstones(connection))))


def forget_workspace(connection: sqlite3.Connection, workspace_id: WorkspaceId) -> None:
    """Delete everything about a workspace that was removed, except what still runs."""
    with transaction(connection):
        connection.execute(
            "DELETE FROM executions WHERE workspace_id = ? AND state <> ?",
            (workspace_id, ExecutionState.STARTED),
        )
        connection.execute(
            "DELETE FROM processes WHERE workspace_id = ?"
            " AND state IN ('exited', 'start_failed', 'lost')",
            (workspace_id,),
        )
        drop_tombstones(connection, workspace_id)


def drop_old(
    connection: sqlite3.Connection, *, ended_before: datetime, kept_max: int
) -> tuple[tuple[WorkspaceId, ProcessId], ...]:
    """Delete old processes; return those whose output may be deleted (see `Journal.expire`)."""
    with transaction(connection):
        old = connection.execute(
            _OLD_PROCESSES, {"ended_before": _as_kept(ended_before), "kept_max": kept_max}
        ).fetchall()
        for _, process_id, is_open, _ in old:
            if not is_open:
                connection.execute("DELETE FROM processes WHERE process_id = ?", (process_id,))
    return tuple(
        (WorkspaceId(workspace_id), ProcessId(process_id))
        for workspace_id, process_id, is_open, place in old
        if not is_open or place > kept_max
    )


def _as_kept(time: datetime) -> str:
    """Return a time in the format of the process records."""
    return time.isoformat().replace("+00:00", "Z")
