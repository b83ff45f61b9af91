"""The process service of this node; the exit of its context ends all processes."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from signal import SIGTERM
from types import TracebackType
from typing import Final

from parley.clock import Clock
from parley.rpc import detached
from parley.tasks import BackgroundTasks, Supervision
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.directories.workspaces import Workspaces
from toolrunner.egress.listeners import EgressRoutes, NoEgress
from toolrunner.journal.records import Effect, Execution, Key, ProcessRecord
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import UNLIMITED, Limits, ProcessId, Scope, WorkspaceId
from toolrunner.primitives.errors import ProcessNotRunning, ReadOnly
from toolrunner.processes.adopted_masks import AdoptedMasks
from toolrunner.processes.adoption import Adoption
from toolrunner.processes.domain import ProcessSpec, TerminalSize
from toolrunner.processes.input import InputWrite, InputWriter, Terminal
from toolrunner.processes.monitor import ProcessMonitor
from toolrunner.processes.node_sandbox import Sandbox
from toolrunner.processes.output.stream import OutputStream
from toolrunner.processes.ownership import Ownership
from toolrunner.processes.registry import Registry
from toolrunner.processes.retention import REMOVED_KEPT, Reaper
from toolrunner.processes.scan import Leader
from toolrunner.processes.scratch import ScratchDirectories, is_reader
from toolrunner.processes.start import ProcessStarter, StartResult
from toolrunner.processes.termination import ProcessTerminator, SignalRequest
from toolrunner.processes.wait import Wait, WaitResult, wait_output
from toolrunner.processes.writers import ChatWriters
from toolrunner.spawner.client.spawner import GRACE_S, KILL_S, Adopted, Ended, Spawner

#: How late a start that is delayed learns that this node stops.
DELAY_STEP_S: Final = 0.5


class Processes:
    """Starts, awaits, signals and finds processes; owns their background tasks.

    Args:
        journal: The journal of effects.
        spawner: Starts processes.
        adopted: Processes that an earlier run of the service left in the spawner.
        workspaces: The directories of workspaces.
        sandbox: Confines processes.
        clock: Time for records, limits and reaping.
        supervision: Isolates failures of background tasks.
        new_id: Ids of processes.
        encode_started: Encodes a process as the response of the method that started it.
        cursor_of: Reads from the response to a write the output cursor before it.
        limits: The limits of every process.
        egress: The egress routes of workspaces; None for none.
        checkpoints: Keeps files before processes change them; None for none.
        on_pruned: Is called with the number of journal entries that were replaced by tombstones.
        removed_kept: How long journal entries of removed workspaces are kept.
    """

    def __init__(
        self,
        *,
        journal: JournalThread,
        spawner: Spawner,
        adopted: Iterable[Adopted],
        workspaces: Workspaces,
        sandbox: Sandbox,
        clock: Clock,
        supervision: Supervision,
        new_id: Callable[[], str],
        encode_started: Callable[[ProcessRecord], bytes],
        cursor_of: Callable[[bytes], int],
        limits: Limits = UNLIMITED,
        egress: EgressRoutes | None = None,
        checkpoints: Checkpoints | None = None,
        on_pruned: Callable[[int], None] = lambda _: None,
        removed_kept: timedelta = REMOVED_KEPT,
    ) -> None:
        egress = egress or NoEgress()
        self._tasks = BackgroundTasks(supervision)
        self._spawner = spawner
        self._workspaces = workspaces
        self._clock = clock
        self._registry = Registry(journal=journal, workspaces=workspaces, clock=clock)
        self._scratch = ScratchDirectories(workspaces)
        monitor = ProcessMonitor(
            journal,
            spawner,
            self._registry,
            self._tasks,
            clock,
            self._scratch,
            checkpoints=checkpoints,
        )
        self._monitor = monitor
        self._writers = ChatWriters(spawner, self._registry, workspaces, clock)
        workspaces.reading_gate = self._writers
        self._starter = ProcessStarter(
            journal=journal,
            spawner=spawner,
            registry=self._registry,
            workspaces=workspaces,
            sandbox=sandbox,
            monitor=monitor,
            writers=self._writers,
            clock=clock,
            new_id=new_id,
            limits=limits,
            egress=egress,
            checkpoints=checkpoints,
        )
        if checkpoints is not None:
            checkpoints.running = self.running_chats
        self._terminator = ProcessTerminator(journal, spawner, self._registry, self._tasks, monitor)
        self._input_writer = InputWriter(journal, self._registry, monitor, cursor_of, checkpoints)
        self._reaper = Reaper(journal, self._registry, workspaces, clock, on_pruned, removed_kept)
        self._ownership = Ownership(spawner, self._tasks)
        self._adopted = tuple(adopted)
        self._masks = AdoptedMasks(egress, clock)
        self._adoption = Adoption(
            journal=journal,
            spawner=spawner,
            registry=self._registry,
            workspaces=workspaces,
            monitor=monitor,
            clock=clock,
            encode_started=encode_started,
            ownership=self._ownership,
            masks=self._masks,
        )

    async def __aenter__(self) -> "Processes":
        await self._tasks.__aenter__()
        await self._adoption.take_over(self._adopted)
        running = {live.record.process_id for live in self._registry.running()}
        await asyncio.to_thread(self._scratch.sweep, running)
        self._tasks.keep("processes.expire", self._reaper.run)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop_waiting()
        self._ownership.close()
        try:
            await self._spawner.end_all(GRACE_S)
            if kind is None:
                for live in self._registry.all_live():
                    await live.ends_within(KILL_S)
        finally:
            # Waits for the end of an output return now.
            for live in self._registry.all_live():
                live.close()
            self._registry.pipes.close()
            await self._tasks.__aexit__(kind, error, traceback)

    @property
    def has_unmasked(self) -> bool:
        """Whether there are processes of an earlier run whose secrets may not be masked."""
        return bool(self._masks.unmasked)

    async def mask_adopted(self) -> None:
        """Mask the secrets of the processes of an earlier run of the service again."""
        await self._masks.run()

    def stop_waiting(self) -> None:
        """End all waits: this node stops."""
        self._registry.stopping.set()
        for live in self._registry.all_live():
            live.wake()

    async def start(self, effect: Effect, scope: Scope, spec: ProcessSpec) -> StartResult:
        """Start a process once; a repeated request attaches to it.

        In a workspace that was ended it waits for a while; a caller who gives up starts nothing.

        Raises:
            ToolrunnerError: It is refused, and nothing was started.
        """
        delays = self._workspaces.restart_delays
        while left_s := delays.left_s(scope.workspace_id, self._clock.monotonic()):
            if self._registry.stopping.is_set():
                break
            await self._clock.sleep(min(left_s, DELAY_STEP_S))
        return await self._tasks.complete(self._start(effect, scope, spec), context=detached())

    async def _start(self, effect: Effect, scope: Scope, spec: ProcessSpec) -> StartResult:
        result = await self._starter.start(effect, scope, spec)
        if spec.needs_owner and not result.is_attached:
            self._ownership.expect(result.record.process_id)
        return result

    async def wait(self, scope: Scope, process_id: ProcessId, wait: Wait) -> WaitResult:
        """Wait for a process and return its output; a timeout is a normal result.

        Raises:
            ProcessNotFound: There is none that this chat may see.
            InvalidRequest: The cursor is past the output.
        """
        if not scope.may_write:
            await self._writers.pass_through(scope)
        with self._workspaces.waits.counted(scope.workspace_id):
            return await wait_output(self._registry, scope, process_id, wait)

    async def stream(self, scope: Scope, process_id: ProcessId, since_cursor: int) -> OutputStream:
        """Open a stream of a process's output.

        Raises:
            ToolrunnerError: There is no such process or output for this chat.
        """
        return await OutputStream.open(self._registry, scope, process_id, since_cursor)

    async def terminal(
        self, scope: Scope, process_id: ProcessId, *, has_pipes: bool = False
    ) -> Terminal:
        """Return the terminal of a process, or its pipes.

        Raises:
            ToolrunnerError: There is no such process for this chat, or it has no terminal.
        """
        await self._changeable(scope, process_id)
        live = self._registry.live(process_id)
        refusal = self._input_writer.refusal(process_id, live, wants_terminal=not has_pipes)
        if refusal is not None or live is None:
            raise refusal or ProcessNotRunning(process_id)
        return Terminal(live, scope, self._input_writer, self._terminator)

    def attached(self, scope: Scope) -> AbstractContextManager[None]:
        """Count an attached terminal of a workspace, in a context."""
        return self._workspaces.attachments.counted(scope.workspace_id)

    def owned(self, process_id: ProcessId) -> AbstractContextManager[None]:
        """End a process, with all that it started, at the end of a context."""
        return self._ownership.claimed(process_id)

    async def write(
        self, effect: Effect, scope: Scope, process_id: ProcessId, input_write: InputWrite
    ) -> int:
        """Write to a process once, and return the output cursor before it.

        Raises:
            ToolrunnerError: It is refused, and nothing was written.
        """
        await self._changeable(scope, process_id)
        return await self._tasks.complete(
            self._input_writer.write(effect, scope, process_id, input_write), context=detached()
        )

    async def resize(
        self, effect: Effect, scope: Scope, process_id: ProcessId, size: TerminalSize
    ) -> None:
        """Change the size of a terminal.

        Raises:
            ToolrunnerError: It is refused, and nothing was changed.
        """
        await self._changeable(scope, process_id)
        await self._tasks.complete(
            self._input_writer.resize(effect, process_id, size), context=detached()
        )

    def running(self) -> Counter[WorkspaceId]:
        """Return how many processes run in each workspace."""
        return Counter(live.record.workspace_id for live in self._registry.running())

    def running_chats(self, workspace_id: WorkspaceId) -> frozenset[str]:
        """Return the chats with running processes in a workspace; no chat for a person's."""
        return frozenset(
            author
            for live in self._registry.running()
            if live.record.workspace_id == workspace_id
            for author in live.authors
        )

    def running_of_chat(self, workspace_id: WorkspaceId, chat_id: str) -> "list[str]":
        """Return the running processes of a chat."""
        return sorted(
            live.record.process_id
            for live in self._registry.running()
            if (live.record.workspace_id, live.record.chat_id) == (workspace_id, chat_id)
        )

    def leaders(self) -> dict[int, Leader]:
        """Return the leaders of the running commands, by pid."""
        return {
            live.record.pid: Leader(live.record.workspace_id, live.record.process_id)
            for live in self._registry.running()
            if live.record.pid
        }

    def blame(self, process_id: ProcessId, exceeded: str) -> None:
        """Record which part of the quota a process exceeded; its exit will contain it."""
        live = self._registry.live(process_id)
        if live is not None and live.is_live:
            live.exceeded = exceeded

    async def end_workspace(
        self, workspace_id: WorkspaceId, grace_s: float = GRACE_S, *, first: int = SIGTERM
    ) -> Ended:
        """End all processes of a workspace, also detached ones; return when none is left."""
        directory = self._workspaces.at(workspace_id).directory
        return await self._tasks.complete(
            self._spawner.end_workspace(workspace_id, directory, grace_s, first=first),
            context=detached(),
        )

    async def signal(
        self, effect: Effect, scope: Scope, process_id: ProcessId, signalling: SignalRequest
    ) -> ProcessRecord:
        """Signal a process and its descendants, once.

        Raises:
            ToolrunnerError: It is refused, and no signal was sent.
        """
        await self._changeable(scope, process_id)
        return await self._tasks.complete(
            self._terminator.signal(effect, process_id, signalling), context=detached()
        )

    async def cancel(self, key: Key) -> Execution:
        """End all processes of an execution, or prevent its start.

        Raises:
            ToolrunnerError: The caller may not, and nothing was ended.
        """
        return await self._tasks.complete(self._terminator.cancel(key), context=detached())

    def keep_start(self, process_id: ProcessId) -> None:
        """Write the result of a start to the journal, since the caller's response relies on it."""
        self._monitor.keep_now(process_id)

    async def keep_starts(self) -> None:
        """Write the results of all starts to the journal."""
        await self._monitor.keep_starts()

    async def get(self, scope: Scope, process_id: ProcessId) -> ProcessRecord:
        """Return the record of a process.

        Raises:
            ProcessNotFound: There is none that this chat may see.
        """
        return await self._registry.get(scope, process_id)

    async def _changeable(self, scope: Scope, process_id: ProcessId) -> None:
        """Check that a call may influence a process.

        Raises:
            ProcessNotFound: There is none that this chat may see.
            ReadOnly: The call may only read, and the process may do more.
        """
        record = await self._registry.get(scope, process_id)
        if not scope.may_write and not is_reader(record):
            raise ReadOnly(process_id)

    async def list(self, scope: Scope) -> tuple[ProcessRecord, ...]:
        """Return all processes that a chat may see: running first, then newest first."""
        if not scope.may_write:
            await self._writers.pass_through(scope)
        return await self._registry.list(scope)
