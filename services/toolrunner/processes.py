"""The processes of this node as its servicers use them; leaving ends everything."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from parley.clock import Clock
from toolrunner.domain import Effect, Execution, Key, ProcessId, ProcessRecord, ProcessSpec, Scope
from toolrunner.effects import Effects
from toolrunner.ending import Ends, Signalling
from toolrunner.journal_thread import JournalThread
from toolrunner.registry import Registry
from toolrunner.spawning import GRACE_S, KILL_S, Spawner
from toolrunner.starting import Started, Starts
from toolrunner.waiting import Wait, Waited, wait_output
from toolrunner.workspaces import Workspaces


class Processes:
    """Starts, awaits, signals and finds processes; owns the tasks that see to them."""

    def __init__(
        self,
        *,
        journal: JournalThread,
        spawner: Spawner,
        workspaces: Workspaces,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._tasks = asyncio.TaskGroup()
        self._spawner = spawner
        self._effects = Effects(self._tasks)
        self._registry = Registry(journal=journal, workspaces=workspaces, clock=clock)
        self._starts = Starts(
            journal=journal,
            spawner=spawner,
            registry=self._registry,
            workspaces=workspaces,
            tasks=self._tasks,
            clock=clock,
            new_id=new_id,
        )
        self._ends = Ends(journal, spawner, self._registry, self._tasks)

    async def __aenter__(self) -> "Processes":
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop_waiting()
        try:
            await self._spawner.end_all(GRACE_S)
            if kind is None:
                for live in self._registry.all_live():
                    await live.ends_within(KILL_S)
            await self._tasks.__aexit__(kind, error, traceback)
        finally:
            for live in self._registry.all_live():
                live.close()

    def stop_waiting(self) -> None:
        """Answer everyone who waits: this node stops."""
        self._registry.stopping.set()
        for live in self._registry.all_live():
            live.wake()

    async def start(self, effect: Effect, scope: Scope, spec: ProcessSpec) -> Started:
        """Start a process once; the same request again attaches to it.

        Raises:
            ToolrunnerError: It is refused, and nothing was started.
        """
        return await self._effects.run(self._starts.start(effect, scope, spec))

    async def wait(self, scope: Scope, process_id: ProcessId, wait: Wait) -> Waited:
        """Wait for a process and return its output; running out of time is an answer.

        Raises:
            ProcessNotFound: There is none that this chat may see.
            InvalidRequest: The cursor is past the output.
        """
        return await wait_output(self._registry, scope, process_id, wait)

    async def signal(
        self, effect: Effect, scope: Scope, process_id: ProcessId, signalling: Signalling
    ) -> ProcessRecord:
        """Signal a process and all it started, once.

        Raises:
            ToolrunnerError: It is refused, and nobody was signalled.
        """
        await self._registry.get(scope, process_id)
        return await self._effects.run(self._ends.signal(effect, process_id, signalling))

    async def cancel(self, key: Key) -> Execution:
        """End all processes of an execution, or see to it that it never starts.

        Raises:
            ToolrunnerError: The caller may not, and nothing was ended.
        """
        return await self._effects.run(self._ends.cancel(key))

    async def get(self, scope: Scope, process_id: ProcessId) -> ProcessRecord:
        """Return what is known of a process.

        Raises:
            ProcessNotFound: There is none that this chat may see.
        """
        return await self._registry.get(scope, process_id)

    async def list(self, scope: Scope) -> tuple[ProcessRecord, ...]:
        """Return all processes that a chat may see: running first, then newest first."""
        return await self._registry.list(scope)
