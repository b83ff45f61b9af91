"""The loop that enforces quotas: what it ends, how soon, and that nothing keeps it from that."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from parley.clock import FakeClock
from support.host.busy_threads import busy_threads
from toolrunner.directories.restart_delays import FIRST_S
from toolrunner.directories.workspaces import Workspaces
from toolrunner.primitives.domain import ProcessId, Quota, WorkspaceId
from toolrunner.processes.scan import Leader, ProcessScan
from toolrunner.processes.service import Processes
from toolrunner.quotas import enforcement
from toolrunner.quotas.cpu_priority import CpuPriorities, GroupPriorities
from toolrunner.quotas.disk import Space
from toolrunner.quotas.enforcement import GLANCE_S, LOOK_S, PIDS_SPARE, RUSH_BYTES, Quotas
from toolrunner.quotas.socket_memory import SocketMemory, SocketMeter
from toolrunner.spawner.client.node_programs import NodePrograms
from toolrunner.spawner.client.spawner import Launch, Launched, LaunchFailed, OnExit, Spawner


class EmptyingSpawner:
    """Starts nothing, and takes away the directories that a program would have looked at."""

    def __init__(self, directory: Path, but: str) -> None:
        self.directory = directory
        self.but = but

    async def start(self, launch: Launch, on_exit: OnExit) -> Launched:
        for name in launch.argv:
            path = Path(name)
            if path.is_relative_to(self.directory) and self.but not in path.parts:
                shutil.rmtree(path, ignore_errors=True)
        raise LaunchFailed("exec", 2)

    async def forget(self, process_id: ProcessId) -> None:
        """Nothing was kept."""


class HangingSpawner:
    """Starts a program and never says so."""

    def __init__(self) -> None:
        self.starts: list[str] = []

    async def start(self, launch: Launch, on_exit: OnExit) -> Launched:
        self.starts.append(launch.argv[0])
        launched: asyncio.Future[Launched] = asyncio.get_running_loop().create_future()
        return await launched

    async def forget(self, process_id: ProcessId) -> None:
        """Nothing was kept."""


@dataclass
class Ending:
    """Processes that only are, and are ended."""

    running: dict[int, Leader]
    ended: list[str] = field(default_factory=list)
    blamed: list[tuple[str, str]] = field(default_factory=list)
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)

    def leaders(self) -> dict[int, Leader]:
        return self.running

    def blame(self, process_id: ProcessId, exceeded: str) -> None:
        self.blamed.append((process_id, exceeded))

    async def end_workspace(self, workspace_id: WorkspaceId, grace_s: float, *, first: int) -> None:
        self.ended.append(workspace_id)
        self.has_ended.set()


NAMES = tuple(f"w{number}" for number in range(8))


@pytest.fixture
def sleepers() -> Iterator[dict[int, Leader]]:
    """A process for each of some workspaces."""
    running = {name: subprocess.Popen(["sleep", "600"]) for name in NAMES}
    yield {each.pid: Leader(WorkspaceId(name), ProcessId(name)) for name, each in running.items()}
    for each in running.values():
        each.kill()
        each.wait()


def overfull(directory: Path, processes: Ending) -> tuple[Quotas, Workspaces]:
    """Return the quotas of some workspaces, of which w5 uses too much."""
    workspaces = Workspaces(directory, quota=Quota(disk_bytes=1024**2))
    for name in NAMES:
        workspaces.prepared(WorkspaceId(name))
    (directory / "w5" / "files" / "big").write_bytes(os.urandom(2 * 1024**2))
    clock = FakeClock()
    spawner = EmptyingSpawner(directory, "w5")
    quotas = Quotas(
        processes=cast(Processes, processes),
        workspaces=workspaces,
        scan=ProcessScan(os.getpid(), dict),
        programs=NodePrograms(cast(Spawner, spawner), lambda: "p"),
        shares=CpuPriorities(clock, cast(GroupPriorities, spawner)),
        sockets=SocketMemory(cast(SocketMeter, spawner), clock),
        directory=directory,
        clock=clock,
    )
    return quotas, workspaces


async def test_a_workspace_that_vanishes_while_it_is_measured_does_not_spare_the_others(
    tmp_path: Path, sleepers: dict[int, Leader]
) -> None:
    processes = Ending(sleepers)
    quotas, workspaces = overfull(tmp_path, processes)
    await quotas.look()
    assert (processes.ended, set(workspaces.overruns)) == (["w5"], {"w5"})


async def test_a_command_that_started_while_its_workspace_was_measured_learns_why_it_is_ended(
    tmp_path: Path, sleepers: dict[int, Leader]
) -> None:
    processes = Ending(sleepers)
    quotas, _ = overfull(tmp_path, processes)
    later = Leader(WorkspaceId("w5"), ProcessId("later"))

    def space(directory: Path) -> Space:
        # Read after the processes, at the begin of a measurement.
        processes.running = {**sleepers, 2**30: later}
        return Space.of(directory)

    quotas.space = space
    await quotas.look()
    assert sorted(processes.blamed) == [("later", "disk_bytes"), ("w5", "disk_bytes")]


async def test_what_was_written_while_a_workspace_was_measured_does_not_end_what_removes_it(
    tmp_path: Path, sleepers: dict[int, Leader]
) -> None:
    processes = Ending(sleepers)
    quotas, _ = overfull(tmp_path, processes)
    await quotas.look()
    ended = []
    for number in range(3):
        (tmp_path / "w5" / "files" / f"more{number}").write_bytes(os.urandom(1024**2))
        cast(FakeClock, quotas.clock).advance(60.0)
        await quotas.look()
        ended.append(len(processes.ended))
    # It is ended again for what was written after the first measurement since its end.
    assert ended == [1, 2, 2]


async def test_quotas_are_enforced_while_other_work_holds_all_threads(
    tmp_path: Path, sleepers: dict[int, Leader]
) -> None:
    processes = Ending(sleepers)
    quotas, _ = overfull(tmp_path, processes)
    with busy_threads():
        async with asyncio.timeout(20):
            await quotas.look()
    assert processes.ended == ["w5"]


async def test_a_workspace_that_has_too_many_processes_again_is_ended_sooner(
    tmp_path: Path, sleepers: dict[int, Leader]
) -> None:
    processes = Ending({pid: each for pid, each in sleepers.items() if each.workspace_id == "w1"})
    quotas, workspaces = overfull(tmp_path, processes)
    # With one process it is as close to the limit as counts.
    workspaces.quota = Quota(pids=PIDS_SPARE + 1)
    ended = []
    for _ in range(4):
        await quotas.look()
        ended.append(len(processes.ended))
    assert ended == [0, 0, 1, 2]
    assert workspaces.restart_delays.left_s(WorkspaceId("w1"), 0.0) == 2 * FIRST_S


async def test_processes_are_bounded_while_a_workspace_is_measured(
    tmp_path: Path, sleepers: dict[int, Leader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enforcement, "tasks_now", lambda: 0)
    processes = Ending({pid: each for pid, each in sleepers.items() if each.workspace_id == "w1"})
    quotas, workspaces = overfull(tmp_path, processes)
    spawner = HangingSpawner()
    quotas.programs = NodePrograms(cast(Spawner, spawner), lambda: "p")
    workspaces.quota = Quota(disk_bytes=1024**2, pids=PIDS_SPARE + 1)
    clock = cast(FakeClock, quotas.clock)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(quotas.run())
        while not processes.ended:
            await clock.until_sleeping()
            clock.advance(GLANCE_S)
        running.cancel()
    # One measurement began, and has not ended.
    assert (processes.ended, spawner.starts) == (["w1"], ["du"])


async def test_a_workspace_that_writes_fast_is_measured_before_the_next_look_is_due(
    tmp_path: Path, sleepers: dict[int, Leader], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other programs of this machine may start many tasks.
    monkeypatch.setattr(enforcement, "tasks_now", lambda: 0)
    processes = Ending({pid: each for pid, each in sleepers.items() if each.workspace_id == "w5"})
    quotas, _ = overfull(tmp_path, processes)
    free_bytes = 10 * RUSH_BYTES
    quotas.space = lambda _: Space(free_bytes, 1000)
    clock = cast(FakeClock, quotas.clock)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(quotas.run())
        for written_bytes in (RUSH_BYTES - 1, 1):
            assert await clock.until_sleeping() == pytest.approx(GLANCE_S)
            assert (processes.ended, clock.monotonic() < LOOK_S) == ([], True)
            free_bytes -= written_bytes
            clock.advance(GLANCE_S)
        await processes.has_ended.wait()
        running.cancel()
    assert (processes.ended, clock.monotonic() < LOOK_S) == (["w5"], True)
