"""Seeing processes to their end: exits, time limits, and what the spawner need keep no longer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from parley.clock import Clock
from parley.tasks import Starter
from toolrunner.journal.journal import Journal
from toolrunner.journal.records import Effect, ProcessRecord
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import Exit, ProcessId, ProcessState
from toolrunner.primitives.errors import JournalFailed, SpawnerGone
from toolrunner.processes.live_process import LiveProcess
from toolrunner.processes.registry import Registry
from toolrunner.spawner.client.spawner import GRACE_S, Spawner

#: How long an exit waits for the rest of the output; whoever holds it open longer is told of.
DRAIN_S: Final = 0.2
#: How long a start waits for its end to be written with it; most commands are over by then.
KEEP_START_S: Final = 0.25
#: How soon an end is written again that the disk did not take.
RECORD_AGAIN_S: Final = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Start:
    """A start whose entry in the journal has no response yet.

    Nobody depends on it: whoever repeats the request attaches, and whoever takes over after a kill
    has the process from the spawner, as long as that keeps it.
    """

    effect: Effect
    response: bytes
    started: ProcessRecord
    timer: asyncio.TimerHandle


@dataclass(frozen=True, slots=True)
class ProcessMonitor:
    """Looks after processes, in the tasks of the owner."""

    journal: JournalThread
    spawner: Spawner
    registry: Registry
    tasks: Starter
    clock: Clock
    starts: dict[ProcessId, _Start] = field(default_factory=dict)

    def exited(self, process_id: ProcessId, exit: Exit) -> None:
        """Publish an exit, once the output is read."""
        live = self.registry.live(process_id)
        if live is None:
            return
        # Mostly everything is there already, and nobody has to wait for it.
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
        """Complete the entry of a start whose end is not waited for."""
        start, live = self.starts.get(process_id), self.registry.live(process_id)
        if start is not None and live is not None:
            start.timer.cancel()
            self._keep_late(live)

    async def keep_starts(self) -> None:
        """Complete all entries of starts, for whoever is to be told what the journal has."""
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
        """End a process after a while; 0 for never."""
        if left_s:
            self.tasks.create_task(self._limit_time(live, left_s))

    def end_input(self, live: LiveProcess) -> None:
        """Let a process read the end of its input."""
        if live.input is not None:
            live.input.end()
            if not live.input.is_terminal:
                self.tasks.create_task(self._let_go_of_input(live))

    async def settle(self, live: LiveProcess) -> None:
        """Put an end that is published into the journal, and have it forgotten by the spawner.

        What is still held open is read on, and put there once more when nobody does.
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
        """Publish an exit once the output is read; whoever holds it open does not delay that."""
        try:
            async with asyncio.timeout(DRAIN_S):
                await live.drained.wait()
        except TimeoutError:
            pass
        self._publish(live, exit)
        await self.settle(live)

    def _publish(self, live: LiveProcess, exit: Exit) -> None:
        live.exit(exit, now=self.clock.now(), now_s=self.clock.monotonic())

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
        """Try until the disk takes it; return whether it did before the node stopped."""
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
        # One entry for both: the spawner forgets the process once it is known how it ended.
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
