"""The journal: each effect and its outcome, on disk before the effect is executed.

Theory: one SQLite file per node, and one process per file. Every effect is one entry, committed
before it is executed and completed when its response is known, each time with a full sync;
concurrent requests share one. With the entry the highest epoch of the chat's owner is stored, so
that an older owner can start nothing after a request of a newer one. An entry without a response
that is found when the file is opened belongs to a service process that ended in between, so its
outcome is unknown, unless the process that it started still exists. The generation is created with
the file: a missing entry proves something only for requests that were sent to this very file.
"""

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, assert_never

from msgspec import structs

from parley.clock import Clock
from toolrunner.journal.database import empty_log, open_file
from toolrunner.journal.records import (
    Execution,
    ExecutionState,
    Journaled,
    Key,
    ProcessRecord,
    ProcessState,
)
from toolrunner.journal.retention import (
    drop_old,
    drop_responses,
    forget_workspace,
    prune,
    recorded_workspaces,
)
from toolrunner.journal.statements import (
    decode_process,
    find_execution,
    insert_execution,
    put_process,
    raise_epoch,
    transaction,
)
from toolrunner.journal.tombstones import find_tombstone
from toolrunner.primitives.domain import NO_CHAT, ChatId, ProcessId, WorkspaceId
from toolrunner.primitives.errors import (
    ExecutionCancelled,
    ExecutionIdReused,
    JournalChanged,
    OutcomeUnknown,
    RequestIdReused,
)

CANCELLED_ERROR: Final = "It was cancelled before it could start, and did not run."


@dataclass(frozen=True, slots=True)
class Begun:
    """The entry is new and on disk: execute the effect now."""


@dataclass(frozen=True, slots=True)
class Known:
    """The same request was received before: do not execute it."""

    execution: Execution


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The request is new, and was not to be begun."""


Beginning = Begun | Known | NotBegun


@dataclass(frozen=True, slots=True)
class Done:
    """Work succeeded, with its result; typed by the caller."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """Work was refused, or the disk write failed."""

    error: Exception


def first_response(execution: Execution) -> bytes:
    """Return the response of a request that was received before.

    Raises:
        ExecutionCancelled: It was cancelled before it could start.
        OutcomeUnknown: It has no response, none yet, or none any more.
    """
    match execution.state:
        case ExecutionState.FINISHED:
            return execution.response
        case ExecutionState.CANCELLED:
            raise ExecutionCancelled(execution.request_id)
        case ExecutionState.STARTED | ExecutionState.UNKNOWN | ExecutionState.ACKNOWLEDGED:
            raise OutcomeUnknown(execution.request_id)
        case _:
            assert_never(execution.state)


class Journal:
    """The open journal; for one thread.

    Attributes:
        generation: Identifies this file for as long as it exists.
        lost: Processes that an earlier service process left, and that are no longer monitored.
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
        self._has_forgotten = False

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
        """Open or create the journal, and settle the entries that an earlier process left open.

        Args:
            path: The file.
            new_generation: Its generation if it is created now.
            boot_id: Identifies the boot of the machine.
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
        """Close the file."""
        self._connection.close()

    def together(self, works: Sequence[Callable[["Journal"], Any]]) -> list[Done | Failed]:
        """Run several works in one transaction; one that is refused does not undo the others.

        When the transaction fails on disk, each is tried by itself.
        """
        outcomes: list[Done | Failed] = []
        if self._connection.in_transaction:
            # Left by an unexpected failure: inside of it nothing would be committed.
            self._connection.rollback()
        try:
            with transaction(self._connection):
                for work in works:
                    outcomes.append(self._outcome(work))
        except sqlite3.Error as error:
            if len(works) == 1:
                return [Failed(error)]
            return [outcome for work in works for outcome in self.together([work])]
        if self._has_forgotten:
            with suppress(sqlite3.Error):  # The next one empties it too.
                empty_log(self._connection)
                self._has_forgotten = False
        return outcomes

    def try_write(self) -> None:
        """Write without a change of the content, to learn whether entries can be written.

        An update to the same value would write nothing: SQLite compares them.
        """
        with transaction(self._connection):
            self._connection.execute("INSERT INTO journal VALUES ('', '')")
            self._connection.execute("DELETE FROM journal WHERE generation = ''")

    def _outcome(self, work: Callable[["Journal"], Any]) -> Done | Failed:
        try:
            return Done(work(self))
        except sqlite3.Error:
            raise
        except Exception as error:
            return Failed(error)

    def begin(
        self, effect: Journaled, process: ProcessRecord | None, *, may_begin: bool = True
    ) -> Beginning:
        """Write an entry before its effect is executed, with the process that it will start.

        Raises:
            JournalChanged: The effect was dispatched to another journal.
            StaleOwner: A newer owner of the chat has called.
            ExecutionIdReused: The execution id names another call.
            RequestIdReused: The request id names another call.
        """
        self._check_generation(effect.key)
        with transaction(self._connection):
            if effect.key is not None:
                raise_epoch(self._connection, effect.key.chat_id, effect.key.owner_epoch)
            known = self._find(effect)
            if known is not None:
                _check_same(known, effect)
                return Known(self._started_after_cancel(known, process))
            if not may_begin:
                return NotBegun()
            self._insert(effect, ExecutionState.STARTED, process)
            return Begun()

    def finish(self, effect: Journaled, response: bytes, process: ProcessRecord | None) -> None:
        """Complete an entry with its response."""
        with transaction(self._connection):
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
        """Delete the entry of an effect that was refused and has changed nothing."""
        with transaction(self._connection):
            self._connection.execute(
                "DELETE FROM executions WHERE is_keyed = ? AND request_id = ? AND state = ?",
                (effect.key is not None, effect.request_id, ExecutionState.STARTED),
            )

    def lose(self, effect: Journaled) -> None:
        """Mark the outcome of an effect as unknown."""
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
        with transaction(self._connection):
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
        """Store the current record of a process."""
        with transaction(self._connection):
            put_process(self._connection, process)

    def process(self, process_id: ProcessId) -> ProcessRecord | None:
        """Return the record of a process."""
        row = self._connection.execute(
            "SELECT record FROM processes WHERE process_id = ?", (process_id,)
        ).fetchone()
        return None if row is None else decode_process(row[0])

    def processes(self, workspace_id: WorkspaceId) -> tuple[ProcessRecord, ...]:
        """Return the records of all processes of a workspace."""
        rows = self._connection.execute(
            "SELECT record FROM processes WHERE workspace_id = ?", (workspace_id,)
        )
        return tuple(decode_process(row[0]) for row in rows)

    def admit(self, chat_id: ChatId, owner_epoch: int) -> None:
        """Store the epoch of a chat's owner before an effect that has a journal of its own.

        Raises:
            StaleOwner: A newer owner of the chat has called.
        """
        with transaction(self._connection):
            raise_epoch(self._connection, chat_id, owner_epoch)

    def execution(self, key: Key) -> Execution | None:
        """Return an entry, or None if there never was one, and store the epoch of the caller.

        Raises:
            JournalChanged: The key names another journal.
            StaleOwner: A newer owner of the chat has called.
            ExecutionIdReused: The entry belongs to another chat.
        """
        self._check_generation(key)
        with transaction(self._connection):
            raise_epoch(self._connection, key.chat_id, key.owner_epoch)
            return self._find_for_chat(key)

    def cancel(self, key: Key) -> Execution:
        """Return an entry; a missing one is inserted as cancelled, so that it cannot begin.

        Raises:
            JournalChanged: The key names another journal.
            StaleOwner: A newer owner of the chat has called.
            ExecutionIdReused: The entry belongs to another chat.
        """
        self._check_generation(key)
        with transaction(self._connection):
            raise_epoch(self._connection, key.chat_id, key.owner_epoch)
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
            insert_execution(self._connection, cancelled, key.workspace_id, is_keyed=True)
            return cancelled

    def acknowledge(self, execution_ids: Sequence[str], generation: str) -> tuple[str, ...]:
        """Drop the responses of completed entries; return the ids of the others.

        The entries stay for a while and then become tombstones, so that none can begin again.

        Raises:
            JournalChanged: They were dispatched to another journal.
        """
        if generation != self.generation:
            raise JournalChanged(self.generation)
        return drop_responses(self._connection, execution_ids, now=self._clock.now())

    def prune(
        self, *, acknowledged_before: datetime, finished_before: datetime, at_once_max: int
    ) -> int:
        """Replace old entries by tombstones; return how many, of which there may be more then.

        Entries of users' requests leave no tombstone. Epochs of owners are never deleted.

        Args:
            acknowledged_before: Entries that were acknowledged before this are old.
            finished_before: Entries that ended before this are old, even if not acknowledged.
            at_once_max: At most so many.
        """
        return prune(
            self._connection,
            acknowledged_before=acknowledged_before,
            finished_before=finished_before,
            at_once_max=at_once_max,
        )

    def recorded_workspaces(self, finished_before: datetime) -> tuple[WorkspaceId, ...]:
        """Return the workspaces with tombstones, or with entries that ended before a time."""
        return recorded_workspaces(self._connection, finished_before)

    def forget_workspace(self, workspace_id: WorkspaceId) -> None:
        """Delete everything about a workspace that was removed, also from the log of writes."""
        forget_workspace(self._connection, workspace_id)
        self._has_forgotten = True

    def expire(
        self, *, ended_before: datetime, kept_max: int
    ) -> tuple[tuple[WorkspaceId, ProcessId], ...]:
        """Delete old processes, and return those whose output may be deleted.

        A process whose result is not acknowledged stays until its entry is pruned; only its output
        is deleted once its workspace has so many newer ones.

        Args:
            ended_before: Processes that ended before this are old.
            kept_max: Finished processes of a workspace beyond these are old.
        """
        return drop_old(self._connection, ended_before=ended_before, kept_max=kept_max)

    def _check_generation(self, key: Key | None) -> None:
        if key is not None and key.journal_generation != self.generation:
            raise JournalChanged(self.generation)

    def _find(self, effect: Journaled) -> Execution | None:
        if effect.key is not None:
            return self._find_by_key(effect.key)
        return find_execution(self._connection, is_keyed=False, request_id=effect.request_id)

    def _find_by_key(self, key: Key) -> Execution | None:
        known = find_execution(self._connection, is_keyed=True, request_id=key.execution_id)
        return find_tombstone(self._connection, key) if known is None else known

    def _find_for_chat(self, key: Key) -> Execution | None:
        known = self._find_by_key(key)
        if known is not None and known.chat_id != key.chat_id:
            raise ExecutionIdReused(key.execution_id)
        return known

    def _started_after_cancel(self, known: Execution, process: ProcessRecord | None) -> Execution:
        """Give a cancelled entry a failed process, when its start is requested later."""
        is_bare = known.state is ExecutionState.CANCELLED and known.process_id is None
        if not is_bare or process is None:
            return known
        failed = structs.replace(
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
        insert_execution(
            self._connection, execution, effect.workspace_id, is_keyed=effect.key is not None
        )
        if process is not None:
            put_process(self._connection, process)


def _check_same(known: Execution, effect: Journaled) -> None:
    if effect.key is None:
        if (known.method, known.body_hash) != (effect.method, effect.body_hash):
            raise RequestIdReused(effect.request_id)
        return
    # Cancelled before it arrived, or a tombstone: what was asked for is not known.
    is_bare = not known.method
    is_same_call = is_bare or (known.method, known.body_hash) == (effect.method, effect.body_hash)
    if known.chat_id != effect.key.chat_id or not is_same_call:
        raise ExecutionIdReused(effect.key.execution_id)
