import asyncio
from dataclasses import dataclass
from pathlib import Path

import psutil

from parley.cli.home.layout import Home
from parley.cli.stack.ports import HostPort
from parley.cli.stack.spec import Caller, Ports, Sizes, Stack
from parley.cli.supervision import process_table
from parley.cli.supervision.database import StackDatabase
from parley.cli.supervision.process_records import SAVE_AGAIN_S, ProcessTableWriter, own_identity
from parley.cli.supervision.process_table import ProcessIdentity, ProcessRecord, ProcessTable
from parley.clock import FakeClock
from support.cli.recorded_progress import RecordedProgress

HTTP = HostPort("127.0.0.1", 1)
CHATD = ProcessRecord("chatd-0", "chatd", ProcessIdentity(3, 4.25), "unix:/x", 0, ())


async def test_a_table_that_cannot_be_saved_is_told_once_and_saved_later(tmp_path: Path) -> None:
    home, clock, progress = Home.at(tmp_path), FakeClock(), RecordedProgress()
    stack = Stack(home, Sizes(), Ports((HTTP,), HTTP), Caller("python", 1, {}))
    records = ProcessTableWriter(stack, StackDatabase("postgresql://x"), progress)
    # Nothing can take the place of a directory.
    home.processes_file.mkdir()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        repairing = tasks.create_task(records.repair(clock))
        records.save((CHATD,))
        await clock.until_sleeping()
        clock.advance(SAVE_AGAIN_S)
        await clock.until_sleeping()
        home.processes_file.rmdir()
        clock.advance(SAVE_AGAIN_S)
        await clock.until_sleeping()
        repairing.cancel()
    (line,) = progress.lines
    assert str(home.processes_file) in line
    assert process_table.load(home.processes_file) == ProcessTable(
        own_identity(), HTTP.url, (CHATD,), HTTP.url
    )


@dataclass(slots=True)
class EndingDatabase(StackDatabase):
    """A server that ends between two looks at it, so many times."""

    ends: int = 1

    def record(self) -> ProcessRecord | None:
        if self.ends > 0:
            self.ends -= 1
            raise psutil.NoSuchProcess(1)
        return None


async def test_a_table_of_a_server_that_just_ended_is_saved_later(tmp_path: Path) -> None:
    home, clock, progress = Home.at(tmp_path), FakeClock(), RecordedProgress()
    stack = Stack(home, Sizes(), Ports((HTTP,), HTTP), Caller("python", 1, {}))
    records = ProcessTableWriter(stack, EndingDatabase("postgresql://x"), progress)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        repairing = tasks.create_task(records.repair(clock))
        records.save((CHATD,))
        assert not home.processes_file.exists()
        await clock.until_sleeping()
        clock.advance(SAVE_AGAIN_S)
        await clock.until_sleeping()
        repairing.cancel()
    assert len(progress.lines) == 1
    assert process_table.load(home.processes_file).processes == (CHATD,)
