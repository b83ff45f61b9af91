"""The programs that work on files: one for each workspace, from its first use until it is idle."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from parley.clock import FakeClock
from parley.tasks import ShieldedTasks
from support.toolrunner.node import running
from support.toolrunner.sandboxes import UNCONFINED
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.worker_pool import IDLE_S, FileWorkerPool, find_ripgrep
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker.protocol import (
    CHUNK_BYTES,
    PIECES_AHEAD,
    Chunk,
    Commit,
    FindFiles,
    FoundFiles,
    ListDirectory,
    Listing,
    Matches,
    PlanUpload,
    PlanWrite,
    ReadBytes,
    SearchFiles,
    Stat,
    StatPath,
    UploadChunk,
)
from toolrunner.fileworker.search.grep import BATCH_LINES_MAX
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import FileWorkerGone
from toolrunner.spawner.client.spawner import Launch, Launched, OnExit, SpawnerProcess
from toolrunner.spawner.client.startup import running_spawner

ONE, OTHER = WorkspaceId("one"), WorkspaceId("other")
SEARCH = SearchFiles("x", False, (), (), (), "smart", 0, False, "files", 10_000, False, 30.0)


@dataclass
class SlowSpawner:
    """The spawner, whose answer to a start is held back while it is not open."""

    process: SpawnerProcess
    is_open: asyncio.Event
    is_started: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self, launch: Launch, on_exit: OnExit) -> Launched:
        launched = await self.process.start(launch, on_exit)
        self.is_started.set()
        await self.is_open.wait()
        return launched

    def __getattr__(self, name: str) -> object:
        return getattr(self.process, name)


@dataclass
class Office:
    file_workers: FileWorkerPool
    spawner: SlowSpawner
    clock: FakeClock
    directory: Path

    def pids(self, workspace_id: WorkspaceId) -> list[int]:
        return running(str(self.directory / workspace_id / "files"))


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    clock = FakeClock()
    numbers = iter(range(100))
    async with running_spawner(tmp_path, adoption_s=0) as spawner, ShieldedTasks() as tasks:
        is_open = asyncio.Event()
        is_open.set()
        slow = SlowSpawner(spawner.process, is_open)
        file_workers = FileWorkerPool(
            spawner=slow,  # type: ignore[arg-type]
            tasks=tasks,
            workspaces=Workspaces(tmp_path / "workspaces"),
            sandbox=UNCONFINED,
            clock=clock,
            new_id=lambda: f"worker-{next(numbers)}-{tmp_path.name}",
            ripgrep=find_ripgrep(),
        )
        yield Office(file_workers, slow, clock, tmp_path / "workspaces")
        file_workers.close()


async def test_each_workspace_has_one_that_many_ask(office: Office) -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        for workspace_id in (ONE, OTHER) * 10:
            tasks.create_task(office.file_workers.ask(workspace_id, StatPath("")))
    assert (len(office.pids(ONE)), len(office.pids(OTHER))) == (1, 1)


async def test_one_that_ended_is_replaced_at_the_next_question(office: Office) -> None:
    await office.file_workers.ask(ONE, StatPath(""))
    [pid] = office.pids(ONE)
    os.kill(pid, 9)
    # Whoever asks before the death is known is told, and nobody after.
    for _ in range(2):
        try:
            await office.file_workers.ask(ONE, StatPath(""))
        except FileWorkerGone:
            continue
    [new] = office.pids(ONE)
    assert new != pid


async def test_nothing_is_kept_of_one_that_could_not_be_started(tmp_path: Path) -> None:
    async with running_spawner(tmp_path, adoption_s=0) as spawner, ShieldedTasks() as tasks:
        file_workers = FileWorkerPool(
            spawner=spawner.process,
            workspaces=Workspaces(tmp_path / "workspaces"),
            tasks=tasks,
            sandbox=UNCONFINED,
            clock=FakeClock(),
            new_id=lambda: "worker",
            ripgrep="x" * 200_000,  # More than the kernel takes for one argument.
        )
        with pytest.raises(FileWorkerGone, match="cannot be started"):
            await file_workers.ask(ONE, StatPath(""))
        _, _, kept = await spawner.process.adopt()
    assert kept == ()


async def test_one_that_does_not_answer_is_ended(office: Office) -> None:
    await office.file_workers.ask(ONE, StatPath(""))
    [pid] = office.pids(ONE)
    os.kill(pid, 19)
    with pytest.raises(FileWorkerGone):
        await office.file_workers.ask(ONE, StatPath(""), limit_s=0.05)
    assert isinstance(await office.file_workers.ask(ONE, StatPath("")), Stat)
    assert pid not in office.pids(ONE)


async def test_one_that_was_started_anew_knows_no_plan_and_stays_well(office: Office) -> None:
    await office.file_workers.ask(ONE, StatPath(""))
    [pid] = office.pids(ONE)
    for forgotten in (Commit("t"), UploadChunk("t", b"x"), PlanUpload("t")):
        with pytest.raises(FileWorkerGone) as gone:
            await office.file_workers.ask(ONE, forgotten)
        assert gone.value.is_replaced
    assert office.pids(ONE) == [pid]


async def test_an_idle_one_ends_and_a_used_one_stays(office: Office) -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        reaper = tasks.create_task(ended(office.file_workers))
        await office.file_workers.ask(ONE, StatPath(""))
        await office.clock.until_sleeping()
        office.clock.advance(IDLE_S / 2)
        await office.clock.until_sleeping()
        await office.file_workers.ask(OTHER, StatPath(""))
        office.clock.advance(IDLE_S / 2)
        await office.clock.until_sleeping()
        assert (len(office.pids(ONE)), len(office.pids(OTHER))) == (0, 1)
        assert list(office.file_workers._pooled) == [OTHER]
        reaper.cancel()


async def ended(file_workers: FileWorkerPool) -> None:
    """Have idle ones ended."""
    async for _ in file_workers.end_idle():
        pass


async def test_one_whose_starter_is_cancelled_serves_the_next_or_ends(office: Office) -> None:
    office.spawner.is_open.clear()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        starting = tasks.create_task(office.file_workers.ask(ONE, StatPath("")))
        await office.spawner.is_started.wait()
        starting.cancel()
        office.spawner.is_open.set()
        await asyncio.wait([starting])
        [pid] = office.pids(ONE)
        await office.file_workers.ask(ONE, StatPath(""))
        assert office.pids(ONE) == [pid]
        reaper = tasks.create_task(ended(office.file_workers))
        for _ in range(3):
            await office.clock.until_sleeping()
            office.clock.advance(IDLE_S / 2)
        await office.clock.until_sleeping()
        reaper.cancel()
    assert (office.pids(ONE), office.file_workers._pooled) == ([], {})


async def test_no_more_is_read_than_a_slow_reader_takes(office: Office) -> None:
    root = office.directory / ONE / "files"
    root.mkdir(parents=True)
    (root / "f").touch()
    os.truncate(root / "f", CHUNK_BYTES * PIECES_AHEAD * 2)
    reading = office.file_workers.stream(ONE, ReadBytes("f", 0, 0, ""))
    await anext(reading)
    # One question after another, so that it has had every turn it could use.
    for _ in range(2 * PIECES_AHEAD):
        await office.file_workers.ask(ONE, StatPath(""))
    os.truncate(root / "f", 0)
    taken = [answer async for answer in reading if isinstance(answer, Chunk)]
    # The head is a piece too.
    assert len(taken) == PIECES_AHEAD - 1


async def test_a_long_search_lets_others_in_between(office: Office) -> None:
    root = office.directory / ONE / "files"
    root.mkdir(parents=True)
    for number in range(2 * BATCH_LINES_MAX + 1):
        (root / f"f{number}").write_text("x\n")
    searching = office.file_workers.stream(ONE, SEARCH)
    first = await anext(searching)
    async with asyncio.timeout(20):
        stat = await office.file_workers.ask(ONE, StatPath("f0"))
        found = await office.file_workers.ask(ONE, FindFiles("f1", False, "", b"", 10, False))
    pieces = [first, *[answer async for answer in searching]]
    assert stat.info.path == "f0"  # type: ignore[union-attr]
    assert [file.info.path for file in found.files] == ["f1"]  # type: ignore[union-attr]
    matches = [piece for piece in pieces if isinstance(piece, Matches)]
    assert len(matches) > 1
    assert sum(len(each.files) for each in matches) == 2 * BATCH_LINES_MAX + 1


async def test_a_name_that_is_no_text_is_shown_and_ends_nothing(office: Office) -> None:
    root = office.directory / ONE / "files"
    root.mkdir(parents=True)
    (root / os.fsdecode(b"bad\xff.txt")).write_text("x\n")
    os.symlink(b"bad\xff.txt", root / "link")
    shown = "bad\ufffd.txt"
    ask = office.file_workers.ask
    listing = await ask(ONE, ListDirectory("", 1, b"", 10, False, False))
    found = await ask(ONE, FindFiles("bad", True, "", b"", 10, False))
    link = await ask(ONE, StatPath("link", no_follow=True))
    missing = await ask(ONE, StatPath("bad.txt"))
    matches = [answer async for answer in office.file_workers.stream(ONE, SEARCH)]
    [pid] = office.pids(ONE)
    with pytest.raises(FileRefused) as refused:
        await ask(ONE, PlanWrite("t", "link", b"y\n"))
    assert isinstance(listing, Listing)
    assert isinstance(found, FoundFiles)
    assert isinstance(link, Stat)
    assert link.info is not None
    assert isinstance(missing, Stat)
    assert [entry.info.path for entry in listing.entries] == [shown, "link"]
    assert [file.info.path for file in found.files] == [shown]
    assert (link.info.link_target, missing.suggestions) == (shown, (shown,))
    files = [file for match in matches if isinstance(match, Matches) for file in match.files]
    assert [file.path for file in files] == [shown]
    assert refused.value.reason == Reason.PATH_FORBIDDEN
    assert office.pids(ONE) == [pid]
