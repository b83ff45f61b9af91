"""The journal: what was begun and how it ended, on disk before anything acts.

Theory: one SQLite file per node, and one process per file. Every effect is one entry, committed
with a full sync before it acts and completed, without waiting for the disk, when its response is
known. With the entry the highest epoch of the chat's owner is stored, so that an older owner can
start nothing after a newer one has asked. An entry without a response that is found when the file
is opened belongs to a process of the service that ended in between, so nobody knows how far it
came, unless what it started is still there. The generation is made with the file: "never seen"
proves something only to those who dispatched to this very file.
"""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final, assert_never

from parley.clock import Clock
from toolrunner.domain import (
    NO_CHAT,
    ChatId,
    Execution,
    ExecutionState,
    Journaled,
    Key,
    ProcessId,
    ProcessRecord,
    ProcessState,
    WorkspaceId,
)
from toolrunner.errors import (
    ExecutionCancelled,
    ExecutionIdReused,
    JournalChanged,
    OutcomeUnknown,
    RequestIdReused,
    StaleOwner,
)
from toolrunner.journal_file import decode_process, ending, open_file, put_process, transaction

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

CANCELLED_ERROR: Final = "It was cancelled before it could start, and did not run."


@dataclass(frozen=True, slots=True)
class Begun:
    """The entry is new and on disk: act now."""


@dataclass(frozen=True, slots=True)
class Known:
    """The same request came before: do not act."""

    execution: Execution


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The request is new, and was not to be begun."""


Beginning = Begun | Known | NotBegun


def first_response(execution: Execution) -> bytes:
    """Return what was answered to a request that came before.

    Raises:
        ExecutionCancelled: It was cancelled before it could start.
        OutcomeUnknown: It was never answered, or is not yet.
    """
    match execution.state:
        case ExecutionState.FINISHED:
            return execution.response
        case ExecutionState.CANCELLED:
            raise ExecutionCancelled(execution.request_id)
        case ExecutionState.STARTED | ExecutionState.UNKNOWN:
            raise OutcomeUnknown(execution.request_id)
        case _:
            assert_never(execution.state)


class Journal:
    """The open journal; for one thread.

    Attributes:
        generation: Names this file for as long as it exists.
        lost: Processes that an earlier process left, and that nobody looks after any more.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        generation: str,
        clock: Clock,
        lost: frozenset[ProcessId],
    ) -> None:
        self._connection = connection
        self._clock = clock
        self.generation = generation
        self.lost = lost

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        new_generation: str,
        boot_id: str,
        clock: Clock,
        adopted: Collection[ProcessId] = (),
    ) -> "Journal":
        """Open or make the journal, and settle what an earlier process left open.

        Args:
            path: The file.
            new_generation: Its generation if it is made now.
            boot_id: Tells one start of the machine from the next.
            clock: Time for the entries.
            adopted: Processes that outlived the earlier process, and so are not lost.

        Raises:
            JournalUnusable: Another process has it, or it cannot be read or written.
        """
        connection, generation, lost = open_file(
            path,
            new_generation=new_generation,
            boot_id=boot_id,
            now=clock.now(),
            adopted=adopted,
        )
        return cls(connection, generation, clock, lost)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def begin(
        self, effect: Journaled, process: ProcessRecord | None, *, may_begin: bool = True
    ) -> Beginning:
        """Write an entry before its effect acts, with the process that it is about to start.

        Raises:
            JournalChanged: The effect was dispatched to another journal.
            StaleOwner: A newer owner has spoken for the chat.
            ExecutionIdReused: The execution id names another call.
            RequestIdReused: The request id names another call.
        """
        self._check_generation(effect.key)
        with transaction(self._connection):
            self._raise_epoch(effect.key)
            known = self._find(effect.key is not None, effect.request_id)
            if known is not None:
                _check_same(known, effect)
                return Known(self._started_after_cancel(known, process))
            if not may_begin:
                return NotBegun()
            self._insert(effect, ExecutionState.STARTED, process)
            return Begun()

    def finish(self, effect: Journaled, response: bytes, process: ProcessRecord | None) -> None:
        """Complete an entry with its response."""
        with ending(self._connection):
            self._connection.execute(
                "UPDATE executions SET state = ?, response = ?, finished_at = ?"
                " WHERE is_keyed = ? AND request_id = ?",
                (
                    ExecutionState.FINISHED,
                    response,
                    self._clock.now().isoformat(),
                    effect.key is not None,
                    effect.request_id,
                ),
            )
            if process is not None:
                put_process(self._connection, process)

    def withdraw(self, effect: Journaled) -> None:
        """Take back the entry of an effect that was refused and has changed nothing."""
        with transaction(self._connection):
            self._connection.execute(
                "DELETE FROM executions WHERE is_keyed = ? AND request_id = ? AND state = ?",
                (effect.key is not None, effect.request_id, ExecutionState.STARTED),
            )

    def lose(self, effect: Journaled) -> None:
        """Say of an effect that nobody knows how far it came."""
        with transaction(self._connection):
            self._connection.execute(
                "UPDATE executions SET state = ?"
                " WHERE is_keyed = ? AND request_id = ? AND state = ?",
                (
                    ExecutionState.UNKNOWN,
                    effect.key is not None,
                    effect.request_id,
                    ExecutionState.STARTED,
                ),
            )

    def finish_start(self, process: ProcessRecord, response: bytes) -> None:
        """Complete the entry that started a process, if an earlier process left it open."""
        with ending(self._connection):
            self._connection.execute(
                "UPDATE executions SET state = ?, response = ?, finished_at = ?"
                " WHERE process_id = ? AND state = ?",
                (
                    ExecutionState.FINISHED,
                    response,
                    self._clock.now().isoformat(),
                    process.process_id,
                    ExecutionState.STARTED,
                ),
            )
            put_process(self._connection, process)

    def record(self, process: ProcessRecord) -> None:
        """Keep what is known of a process now."""
        with ending(self._connection):
            put_process(self._connection, process)

    def process(self, process_id: ProcessId) -> ProcessRecord | None:
        """Return what was kept of a process."""
        row = self._connection.execute(
            "SELECT record FROM processes WHERE process_id = ?", (process_id,)
        ).fetchone()
        return None if row is None else decode_process(row[0])

    def processes(self, workspace_id: WorkspaceId) -> tuple[ProcessRecord, ...]:
        """Return what was kept of all processes of a workspace."""
        rows = self._connection.execute(
            "SELECT record FROM processes WHERE workspace_id = ?", (workspace_id,)
        )
        return tuple(decode_process(row[0]) for row in rows)

    def execution(self, key: Key) -> Execution | None:
        """Return an entry, or None if there never was one, and store the epoch of who asks.

        Raises:
            JournalChanged: The key names another journal.
            StaleOwner: A newer owner has spoken for the chat.
            ExecutionIdReused: The entry is another chat's.
        """
        self._check_generation(key)
        with transaction(self._connection):
            self._raise_epoch(key)
            return self._find_for_chat(key)

    def cancel(self, key: Key) -> Execution:
        """Return an entry; one that never was is made as cancelled, so that it cannot begin.

        Raises:
            JournalChanged: The key names another journal.
            StaleOwner: A newer owner has spoken for the chat.
            ExecutionIdReused: The entry is another chat's.
        """
        self._check_generation(key)
        with transaction(self._connection):
            self._raise_epoch(key)
            known = self._find_for_chat(key)
            if known is not None:
                return known
            now = self._clock.now()
            cancelled = Execution(
                request_id=key.execution_id,
                chat_id=key.chat_id,
                method="",
                body_hash=b"",
                state=ExecutionState.CANCELLED,
                process_id=None,
                response=b"",
                started_at=now,
                finished_at=now,
            )
            self._insert_row(cancelled, is_keyed=True)
            return cancelled

    def acknowledge(self, execution_ids: Sequence[str], generation: str) -> tuple[str, ...]:
        """Drop the responses of entries that are over; return those that are not.

        The entries stay for a while, so that none of them can begin again.

        Raises:
            JournalChanged: They were dispatched to another journal.
        """
        if generation != self.generation:
            raise JournalChanged(self.generation)
        skipped = []
        with transaction(self._connection):
            for execution_id in execution_ids:
                dropped = self._connection.execute(
                    "UPDATE executions SET response = x'',"
                    " acknowledged_at = coalesce(acknowledged_at, ?)"
                    " WHERE is_keyed AND request_id = ? AND state <> ?",
                    (self._clock.now().isoformat(), execution_id, ExecutionState.STARTED),
                )
                if dropped.rowcount == 0:
                    skipped.append(execution_id)
        return tuple(skipped)

    def expire(
        self, *, ended_before: datetime, acknowledged_before: datetime, kept_max: int
    ) -> tuple[tuple[WorkspaceId, ProcessId], ...]:
        """Drop what is old, and return the processes whose output may go.

        A process whose result nobody acknowledged stays, however old it is; only its output goes
        once its workspace has so many newer ones.

        Args:
            ended_before: Processes that ended before this are old.
            acknowledged_before: Entries that were acknowledged before this are old.
            kept_max: Finished processes of a workspace beyond these are old.
        """
        with transaction(self._connection):
            self._connection.execute(
                "DELETE FROM executions WHERE acknowledged_at < ?",
                (acknowledged_before.isoformat(),),
            )
            old = self._connection.execute(
                _OLD_PROCESSES, {"ended_before": _as_kept(ended_before), "kept_max": kept_max}
            ).fetchall()
            for _, process_id, is_open, _ in old:
                if not is_open:
                    self._connection.execute(
                        "DELETE FROM processes WHERE process_id = ?", (process_id,)
                    )
        return tuple(
            (WorkspaceId(workspace_id), ProcessId(process_id))
            for workspace_id, process_id, is_open, place in old
            if not is_open or place > kept_max
        )

    def _check_generation(self, key: Key | None) -> None:
        if key is not None and key.journal_generation != self.generation:
            raise JournalChanged(self.generation)

    def _raise_epoch(self, key: Key | None) -> None:
        if key is None:
            return
        row = self._connection.execute(
            "INSERT INTO owners VALUES (?, ?) ON CONFLICT (chat_id) DO UPDATE"
            " SET highest_epoch = max(highest_epoch, excluded.highest_epoch)"
            " RETURNING highest_epoch",
            (key.chat_id, key.owner_epoch),
        ).fetchone()
        if row[0] > key.owner_epoch:
            raise StaleOwner(key.owner_epoch, row[0])

    def _find_for_chat(self, key: Key) -> Execution | None:
        known = self._find(True, key.execution_id)
        if known is not None and known.chat_id != key.chat_id:
            raise ExecutionIdReused(key.execution_id)
        return known

    def _find(self, is_keyed: bool, request_id: str) -> Execution | None:
        row = self._connection.execute(
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

    def _started_after_cancel(self, known: Execution, process: ProcessRecord | None) -> Execution:
        """Give a cancelled entry the process that never ran, once somebody asks to start it."""
        is_bare = known.state is ExecutionState.CANCELLED and known.process_id is None
        if not is_bare or process is None:
            return known
        failed = replace(
            process,
            state=ProcessState.START_FAILED,
            start_error=CANCELLED_ERROR,
            ended_at=self._clock.now(),
        )
        put_process(self._connection, failed)
        self._connection.execute(
            "UPDATE executions SET process_id = ? WHERE is_keyed AND request_id = ?",
            (process.process_id, known.request_id),
        )
        return replace(known, process_id=process.process_id)

    def _insert(
        self, effect: Journaled, state: ExecutionState, process: ProcessRecord | None
    ) -> None:
        execution = Execution(
            request_id=effect.request_id,
            chat_id=NO_CHAT if effect.key is None else effect.key.chat_id,
            method=effect.method,
            body_hash=effect.body_hash,
            state=state,
            process_id=None if process is None else process.process_id,
            response=b"",
            started_at=self._clock.now(),
            finished_at=None,
        )
        self._insert_row(execution, is_keyed=effect.key is not None)
        if process is not None:
            put_process(self._connection, process)

    def _insert_row(self, execution: Execution, *, is_keyed: bool) -> None:
        finished_at = execution.finished_at
        self._connection.execute(
            "INSERT INTO executions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (
                is_keyed,
                execution.request_id,
                execution.chat_id,
                execution.method,
                execution.body_hash,
                execution.state,
                execution.process_id,
                execution.response,
                execution.started_at.isoformat(),
                None if finished_at is None else finished_at.isoformat(),
            ),
        )


def _as_kept(time: datetime) -> str:
    """Return a time as the records of processes have it."""
    return time.isoformat().replace("+00:00", "Z")


def _check_same(known: Execution, effect: Journaled) -> None:
    if effect.key is None:
        if (known.method, known.body_hash) != (effect.method, effect.body_hash):
            raise RequestIdReused(effect.request_id)
        return
    is_bare = known.state is ExecutionState.CANCELLED and not known.method
    is_same_call = is_bare or (known.method, known.body_hash) == (effect.method, effect.body_hash)
    if known.chat_id != effect.key.chat_id or not is_same_call:
        raise ExecutionIdReused(effect.key.execution_id)
