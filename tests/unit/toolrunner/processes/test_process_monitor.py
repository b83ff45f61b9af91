"""What a start and an end leave in the journal, and in how many writes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from msgspec import structs

from parley.clock import FakeClock
from support.host.conditions import until
from toolrunner.directories.workspaces import Workspaces
from toolrunner.journal.journal import Journal
from toolrunner.journal.records import Effect, ExecutionState, Key, ProcessRecord, ProcessState
from toolrunner.journal.thread import JournalThread, open_journal
from toolrunner.primitives.domain import ChatId, ExecutionId, Exit, ProcessId, WorkspaceId
from toolrunner.processes.live_process import LiveProcess, Pipes
from toolrunner.processes.monitor import KEEP_START_S, ProcessMonitor
from toolrunner.processes.output.buffer import KeptOutput
from toolrunner.processes.output.log import OutputLog
from toolrunner.processes.registry import Registry
from toolrunner.processes.scratch import ScratchDirectories
from toolrunner.spawner.client.spawner import Spawner

T = TypeVar("T")
CLOCK = FakeClock()
KEY = Key(ExecutionId("r"), ChatId("c"), 1, "g")
EFFECT = Effect("r", KEY, "/Start", b"", lambda record: record.state.encode(), WorkspaceId("w"))
STARTING = ProcessRecord(
    process_id=ProcessId("p"),
    workspace_id=WorkspaceId("w"),
    chat_id=ChatId("c"),
    request_id="r",
    command="true",
    workdir="/",
    is_background=False,
    state=ProcessState.STARTING,
    started_at=CLOCK.now(),
)


class CountedJournal:
    """A journal that counts what it is asked to do."""

    def __init__(self, thread: JournalThread) -> None:
        self.thread = thread
        self.asked = 0

    async def run(self, work: Callable[[Journal], T]) -> T:
        self.asked += 1
        return await self.thread.run(work)


class ForgettingSpawner:
    """A spawner that is told whom to forget."""

    def __init__(self) -> None:
        self.forgotten: list[ProcessId] = []
        self.was_told = asyncio.Event()

    async def forget(self, process_id: ProcessId) -> None:
        self.forgotten.append(process_id)
        self.was_told.set()


@dataclass
class Desk:
    """One process that runs and was begun in the journal."""

    journal: CountedJournal
    spawner: ForgettingSpawner
    monitor: ProcessMonitor
    live: LiveProcess

    async def state(self) -> tuple[ExecutionState, bytes, ProcessState]:
        """Return what the journal has, without being counted."""
        execution = await self.journal.thread.run(lambda journal: journal.execution(KEY))
        record = await self.journal.thread.run(lambda journal: journal.process(STARTING.process_id))
        assert execution is not None
        assert record is not None
        return execution.state, execution.response, record.state

    def start(self) -> None:
        self.live.record = structs.replace(self.live.record, state=ProcessState.RUNNING)
        self.monitor.keep_start(EFFECT, self.live, self.monitor.registry.present(self.live))

    async def end(self) -> None:
        self.live.close()
        self.monitor.exited(STARTING.process_id, Exit(exit_code=0))
        await self.spawner.was_told.wait()


@asynccontextmanager
async def pooled(directory: Path) -> AsyncIterator[Desk]:
    opened = open_journal(directory / "j.sqlite", new_generation="g", boot_id="b", clock=CLOCK)
    async with asyncio.timeout(5), opened as thread, asyncio.TaskGroup() as tasks:
        await thread.run(lambda journal: journal.begin(EFFECT, STARTING))
        spawner, counted = ForgettingSpawner(), CountedJournal(thread)
        journal = cast(JournalThread, counted)
        workspaces = Workspaces(directory)
        registry = Registry(journal=journal, workspaces=workspaces, clock=CLOCK)
        live = LiveProcess(STARTING, KeptOutput(OutputLog(directory, "p", 1000)), 0.0, Pipes())
        registry.enter(live)
        monitor = ProcessMonitor(
            journal, cast(Spawner, spawner), registry, tasks, CLOCK, ScratchDirectories(workspaces)
        )
        yield Desk(counted, spawner, monitor, live)


async def test_a_start_and_an_end_soon_after_are_one_write(tmp_path: Path) -> None:
    async with pooled(tmp_path) as stage:
        stage.start()
        await stage.end()
        assert stage.journal.asked == 1
        # The response is that of the start, whatever became of the process.
        assert await stage.state() == (ExecutionState.FINISHED, b"running", ProcessState.EXITED)
        assert stage.spawner.forgotten == [STARTING.process_id]
        assert stage.monitor.starts == {}


async def test_whoever_is_told_that_a_process_runs_finds_it_in_the_journal(tmp_path: Path) -> None:
    async with pooled(tmp_path) as stage:
        stage.start()
        assert (await stage.state())[0] is ExecutionState.STARTED
        stage.monitor.keep_now(STARTING.process_id)
        await asyncio.to_thread(until, lambda: not stage.monitor.starts, "the entry", within_s=5)
        assert await stage.state() == (ExecutionState.FINISHED, b"running", ProcessState.RUNNING)
        await stage.end()
        assert await stage.state() == (ExecutionState.FINISHED, b"running", ProcessState.EXITED)
        assert stage.journal.asked == 2


async def test_whoever_asks_the_journal_hears_of_starts_before_they_end(tmp_path: Path) -> None:
    async with pooled(tmp_path) as stage:
        stage.start()
        await stage.monitor.keep_starts()
        assert await stage.state() == (ExecutionState.FINISHED, b"running", ProcessState.RUNNING)
        await stage.monitor.keep_starts()
        assert stage.journal.asked == 1


async def test_a_start_without_an_end_is_kept_after_a_while(tmp_path: Path) -> None:
    async with pooled(tmp_path) as stage:
        stage.start()
        (start,) = stage.monitor.starts.values()
        left_s = start.timer.when() - asyncio.get_running_loop().time()
        assert 0 < left_s <= KEEP_START_S
        await asyncio.to_thread(until, lambda: not stage.monitor.starts, "the entry", within_s=5)
        assert await stage.state() == (ExecutionState.FINISHED, b"running", ProcessState.RUNNING)


async def test_a_start_that_failed_is_kept_at_once_and_may_be_forgotten(tmp_path: Path) -> None:
    async with pooled(tmp_path) as stage:
        stage.live.fail("it is not there", now=CLOCK.now())
        stage.monitor.keep_start(EFFECT, stage.live, stage.live.record)
        await asyncio.to_thread(until, lambda: stage.live.is_settled, "the entry", within_s=5)
        state = (ExecutionState.FINISHED, b"start_failed", ProcessState.START_FAILED)
        assert (await stage.state(), stage.journal.asked) == (state, 1)
