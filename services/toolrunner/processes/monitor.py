"""The process monitor: exits, time limits, and journal entries of starts and ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from signal import SIGKILL
from typing import Final

from parley.clock import Clock
from parley.tasks import Starter
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.journal.journal import Journal
from toolrunner.journal.records import Effect, ProcessRecord, ProcessState
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import Exit, ProcessId
from toolrunner.primitives.errors import JournalFailed, SpawnerGone
from toolrunner.processes.live_process import LiveProcess
from toolrunner.processes.registry import Registry
from toolrunner.processes.scratch import ScratchDirectories, is_reader
from toolrunner.spawner.client.spawner import GRACE_S, Spawner

#: How long an exit waits for the rest of the output; open pipes after that are reported.
DRAIN_S: Final = 0.2
#: How long the entry of a start waits for the end, to write both at once; most commands have ended
#: by then.
KEEP_START_S: Final = 0.25
#: The delay before an end is written again after a failed disk write.
RECORD_AGAIN_S: Final = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Start:
    """A start whose entry in the journal has no response yet.

    That is safe: a repeated request attaches to the process, and after a kill the next service
    adopts the process from the spawner, as long as that keeps it.
    """

    effect: Effect
    response: bytes
    started: ProcessRecord
    timer: asyncio.TimerHandle


@dataclass(frozen=True, slots=True)
class ProcessMonitor:
    """Monitors processes, in the tasks of the owner."""

    journal: JournalThread
    spawner: Spawner
    registry: Registry
    tasks: Starter
    clock: Clock
    scratch: ScratchDirectories
    starts: dict[ProcessId, _Start] = field(default_factory=dict)
    checkpoints: Checkpoints | None = None  # None if nothing is kept of changed files.

    def exited(self, process_id: ProcessId, exit: Exit) -> None:
        """Publish an exit, once the output is read."""
        live = self.registry.live(process_id)
        if live is None:
            return
        # Usually all output is available already, so no task has to wait.
        live.read_rest()
        if live.drained.is_set():
            self._publish(live, exit)
            self.tasks.create_task(self.settle(live))
        else:
            self.tasks.create_task(self._finish(live, exit))

    def keep_start(self, effect: Effect, live: LiveProcess, started: ProcessRecord) -> None:
        """Complete the entry of a start: with that of its end, if it ends soon."""
        loop = asyncio.get_running_loop()
        is_over = started.state is ProcessState.START_FAILED
        wait_s = 0.0 if is_over else KEEP_START_S
        timer = loop.call_later(wait_s, self._keep_late, live)
        start = _Start(effect, effect.encode(started), started, timer)
        self.starts[started.process_id] = start

    def keep_now(self, process_id: ProcessId) -> None:
        """Complete the entry of a start without waiting for its end."""
        start, live = self.starts.get(process_id), self.registry.live(process_id)
        if start is not None and live is not None:
            start.timer.cancel()
            self._keep_late(live)

    async def keep_starts(self) -> None:
        """Complete all entries of starts, before the journal is read."""
        waiting = [*self.starts.items()]
        if not waiting:
            return

        def write(journal: Journal) -> None:
            for _, start in waiting:
                journal.finish(start.effect, start.response, start.started)

        if await self._kept(write):
            for process_id, start in waiting:
                self._is_kept(process_id, start)

    def limit_time(self, live: LiveProcess, left_s: float) -> None:
        """End a process after a time; 0 for never."""
        if left_s:
            self.tasks.create_task(self._limit_time(live, left_s))

    def end_input(self, live: LiveProcess) -> None:
        """Close the input of a process."""
        if live.input is not None:
            live.input.end()
            if not live.input.is_terminal:
                self.tasks.create_task(self._let_go_of_input(live))

    async def settle(self, live: LiveProcess) -> None:
        """Write a published end to the journal, then drop the process from the spawner.

        An output that is still open is read on, and the end is written again when it is closed.
        """
        if not live.drained.is_set():
            await self._record(live)
            await live.drained.wait()
        if not await self._until_kept(lambda: self._record(live)):
            return
        live.is_settled = True
        self.registry.forget_oldest()
        try:
            await self.spawner.forget(live.record.process_id)
        except SpawnerGone:
            logger.debug("the spawner is gone, and so is what it kept")

    async def _finish(self, live: LiveProcess, exit: Exit) -> None:
        """Publish an exit once the output is read, or after `DRAIN_S` if it stays open."""
        try:
            async with asyncio.timeout(DRAIN_S):
                await live.drained.wait()
        except TimeoutError:
            pass
        self._publish(live, exit)
        await self.settle(live)

    def _publish(self, live: LiveProcess, exit: Exit) -> None:
        if is_reader(live.record):
            has_scratch = self.scratch.throw(live.record)
            self.tasks.create_task(self._clear(live.record, has_scratch=has_scratch))
        live.exit(exit, now=self.clock.now(), now_s=self.clock.monotonic())
        if self.checkpoints is not None:
            self.checkpoints.process_ended(live.record.workspace_id)

    async def _clear(self, record: ProcessRecord, *, has_scratch: bool) -> None:
        """End what a process that may only read left behind, and with it its temporary files."""
        directory = self.scratch.workspaces.at(record.workspace_id).directory
        try:
            await self.spawner.signal_marked(
                record.workspace_id, directory, record.process_id, SIGKILL
            )
        except SpawnerGone:
            logger.debug("the spawner is gone, and so is what it started")
        if has_scratch:
            await asyncio.to_thread(self.scratch.empty, record)

    def _keep_late(self, live: LiveProcess) -> None:
        start = self.starts.get(live.record.process_id)
        if start is not None:
            self.tasks.create_task(self._keep_start(live, start))

    async def _keep_start(self, live: LiveProcess, start: _Start) -> None:
        async def keep() -> bool:
            return await self._kept(
                lambda journal: journal.finish(start.effect, start.response, start.started)
            )

        if await self._until_kept(keep):
            self._is_kept(live.record.process_id, start)
            if start.started.state is ProcessState.START_FAILED:
                live.is_settled = True

    def _is_kept(self, process_id: ProcessId, start: _Start) -> None:
        start.timer.cancel()
        self.starts.pop(process_id, None)

    async def _until_kept(self, keep: Callable[[], Awaitable[bool]]) -> bool:
        """Retry until the disk write succeeds; return whether it did before the node stopped."""
        while not await keep():
            if self.registry.stopping.is_set():
                return False
            await self.clock.sleep(RECORD_AGAIN_S)
        return True

    async def _record(self, live: LiveProcess) -> bool:
        ended = self.registry.present(live)
        start = self.starts.get(ended.process_id)
        if start is None:
            return await self._kept(lambda journal: journal.record(ended))
        start.timer.cancel()
        # One entry for both: the spawner drops the process once its end is on disk.
        is_kept = await self._kept(
            lambda journal: journal.finish(start.effect, start.response, ended)
        )
        if is_kept:
            self._is_kept(ended.process_id, start)
        return is_kept

    async def _kept(self, write: Callable[[Journal], None]) -> bool:
        try:
            await self.journal.run(write)
        except JournalFailed as error:
            logger.warning("what became of processes is not on disk: %s", error)
            return False
        return True

    async def _limit_time(self, live: LiveProcess, left_s: float) -> None:
        async with asyncio.TaskGroup() as tasks:
            timing_out = tasks.create_task(self._time_out(live, left_s))
            while not live.ended.is_set() and not self.registry.stopping.is_set():
                await live.ending.wait()
            timing_out.cancel()

    async def _time_out(self, live: LiveProcess, left_s: float) -> None:
        await self.clock.sleep(left_s)
        live.is_timed_out = True
        await self.spawner.end(live.record.process_id, GRACE_S)

    async def _let_go_of_input(self, live: LiveProcess) -> None:
        if live.input is not None:
            await live.input.closed.wait()
            try:
                await self.spawner.close_input(live.record.process_id)
            except SpawnerGone:
                logger.debug("the spawner is gone, and so is what it kept")
