"""All processes of this node: those of this run in memory, earlier ones in the journal."""

import asyncio
from typing import Final

from parley.clock import Clock
from toolrunner.directories.workspaces import Workspaces
from toolrunner.journal.records import ProcessRecord, ProcessState
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import ProcessId, Scope
from toolrunner.primitives.errors import ProcessNotFound, TooManyProcesses
from toolrunner.processes.live_process import LiveProcess, Pipes
from toolrunner.processes.output.excerpt import Source
from toolrunner.processes.output.log import FinishedLog

WORKSPACE_PROCESSES_MAX: Final = 64
CHAT_PROCESSES_MAX: Final = 16
FINISHED_HELD_MAX: Final = 100


class Registry:
    """Finds processes, for callers that may see them.

    Attributes:
        stopping: Set when this node stops, and all waits have to end.
        pipes: Reads the output of all processes.
    """

    def __init__(self, *, journal: JournalThread, workspaces: Workspaces, clock: Clock) -> None:
        self.stopping = asyncio.Event()
        self.pipes = Pipes()
        self._journal = journal
        self._workspaces = workspaces
        self._clock = clock
        self._live: dict[ProcessId, LiveProcess] = {}
        #: Those that were live at the last check.
        self._running: dict[ProcessId, LiveProcess] = {}

    def enter(self, live: LiveProcess) -> None:
        """Add a process."""
        self._live[live.record.process_id] = self._running[live.record.process_id] = live

    def leave(self, process_id: ProcessId) -> None:
        """Remove a process that was not started."""
        self._live.pop(process_id, None)
        self._running.pop(process_id, None)

    def live(self, process_id: ProcessId) -> LiveProcess | None:
        """Return a process of this run of the service."""
        return self._live.get(process_id)

    def all_live(self) -> tuple[LiveProcess, ...]:
        """Return every process of this run of the service."""
        return tuple(self._live.values())

    def present(self, live: LiveProcess) -> ProcessRecord:
        """Return the current record of a process."""
        return live.present(self._clock.monotonic())

    async def find(self, process_id: ProcessId) -> ProcessRecord | None:
        """Return the record of a process, without a check of the caller."""
        live = self._live.get(process_id)
        if live is not None:
            return self.present(live)
        return await self._journal.run(lambda journal: journal.process(process_id))

    async def get(self, scope: Scope, process_id: ProcessId) -> ProcessRecord:
        """Return the record of a process.

        Raises:
            ProcessNotFound: There is none that this chat may see.
            ToolrunnerError: The workspace may not be used.
        """
        self._workspaces.check(scope, allow_not_ready=True)
        record = await self.find(process_id)
        if record is None or not scope.may_see(record):
            raise ProcessNotFound(process_id)
        return record

    async def list(self, scope: Scope) -> tuple[ProcessRecord, ...]:
        """Return all processes that a chat may see: running first, then newest first."""
        self._workspaces.check(scope, allow_not_ready=True)
        kept = await self._journal.run(lambda journal: journal.processes(scope.workspace_id))
        records = [
            self.present(live) if (live := self._live.get(record.process_id)) else record
            for record in kept
            if scope.may_see(record)
        ]
        records.sort(key=lambda record: (record.started_at, record.process_id), reverse=True)
        records.sort(key=lambda record: record.state is not ProcessState.RUNNING)
        return tuple(records)

    def output(self, record: ProcessRecord) -> Source:
        """Return the output of a process that can still be read."""
        live = self._live.get(record.process_id)
        if live is not None:
            return live.output
        return FinishedLog(self._workspaces.at(record.workspace_id).logs, record.process_id)

    def check_room(self, scope: Scope) -> None:
        """Check the limits on concurrent processes.

        Raises:
            TooManyProcesses: A limit is reached.
        """
        here = [
            live.record for live in self.running() if live.record.workspace_id == scope.workspace_id
        ]
        if len(here) >= WORKSPACE_PROCESSES_MAX:
            raise TooManyProcesses("workspace", WORKSPACE_PROCESSES_MAX)
        of_chat = sum(record.chat_id == scope.chat_id for record in here)
        if scope.chat_id and of_chat >= CHAT_PROCESSES_MAX:
            raise TooManyProcesses("chat", CHAT_PROCESSES_MAX)

    def running(self) -> tuple[LiveProcess, ...]:
        """Return the processes that are starting or running."""
        for process_id in [id for id, live in self._running.items() if not live.is_live]:
            del self._running[process_id]
        return tuple(self._running.values())

    def forget_oldest(self) -> None:
        """Drop the oldest settled processes from memory; they stay on disk."""
        finished = [live for live in self._live.values() if live.is_settled]
        for live in finished[:-FINISHED_HELD_MAX]:
            del self._live[live.record.process_id]
