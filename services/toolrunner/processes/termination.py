"""Signals and cancellation of processes, each at most once."""

from dataclasses import dataclass
from typing import Final

from parley.tasks import Starter
from toolrunner.journal.journal import Begun, NotBegun
from toolrunner.journal.records import Effect, Execution, Key, ProcessRecord, ProcessState
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import ProcessId
from toolrunner.primitives.errors import ProcessNotFound, ProcessNotRunning
from toolrunner.processes.live_process import LiveProcess
from toolrunner.processes.monitor import ProcessMonitor
from toolrunner.processes.registry import Registry
from toolrunner.spawner.client.spawner import GRACE_S, NO_SIGNAL, Spawner

#: The exit is reported before the last descendant is gone; this is the time to publish it.
PUBLISH_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """A signal and its recipients."""

    number: int
    leader_only: bool
    escalate_after_s: float  # 0 for never.


@dataclass(frozen=True, slots=True)
class ProcessTerminator:
    """Ends processes, in the tasks of the owner."""

    journal: JournalThread
    spawner: Spawner
    registry: Registry
    tasks: Starter
    monitor: ProcessMonitor

    async def signal(
        self, effect: Effect, process_id: ProcessId, signalling: SignalRequest
    ) -> ProcessRecord:
        """Signal a process and its descendants; a repeated request sends no signal.

        Raises:
            ToolrunnerError: It is refused, and no signal was sent.
        """
        live = self.registry.live(process_id)
        is_there = live is not None and (live.is_live or not live.drained.is_set())
        beginning = await self.journal.run(
            lambda journal: journal.begin(effect, None, may_begin=is_there)
        )
        if isinstance(beginning, NotBegun):
            raise ProcessNotRunning(process_id)
        if isinstance(beginning, Begun) and live is not None:
            await self.send(live, signalling)
        record = await self.registry.find(process_id)
        if record is None:
            raise ProcessNotFound(process_id)
        if isinstance(beginning, Begun):
            response = effect.encode(record)
            await self.journal.run(lambda journal: journal.finish(effect, response, None))
        return record

    async def cancel(self, key: Key) -> Execution:
        """End all processes of an execution, or prevent its start.

        Raises:
            ToolrunnerError: The caller may not, and nothing was ended.
        """
        execution = await self.journal.run(lambda journal: journal.cancel(key))
        live = None if execution.process_id is None else self.registry.live(execution.process_id)
        if live is None:
            return execution
        await live.settled.wait()
        if live.record.state is not ProcessState.START_FAILED:
            await self.spawner.end(live.record.process_id, GRACE_S)
            await live.ends_within(PUBLISH_S)
        await self.monitor.keep_starts()
        return await self.journal.run(lambda journal: journal.cancel(key))

    async def send(self, live: LiveProcess, signalling: SignalRequest) -> None:
        """Signal a process, without a check of the caller."""
        await live.settled.wait()
        process_id = live.record.process_id
        await self.spawner.signal(process_id, signalling.number, leader_only=signalling.leader_only)
        if signalling.escalate_after_s:
            rest = self.spawner.end(process_id, signalling.escalate_after_s, first=NO_SIGNAL)
            self.tasks.create_task(rest)
