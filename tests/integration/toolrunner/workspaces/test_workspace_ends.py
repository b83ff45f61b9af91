"""A workspace that stops: everything in it dies, however it detached itself, and nothing else."""

import asyncio
import random  # noqa: TID251 (ids of a test)
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from parley.clock import Clock, FakeClock, SystemClock
from parley.process import TimeOrderedIds
from support.host.conditions import until
from support.host.supervised import supervision
from support.toolrunner.node import running
from support.toolrunner.sandboxes import UNCONFINED
from toolrunner.directories.workspaces import Workspaces
from toolrunner.journal.records import Effect
from toolrunner.journal.thread import open_journal
from toolrunner.primitives.domain import ChatId, Scope, WorkspaceId
from toolrunner.processes.domain import ProcessSpec
from toolrunner.processes.service import DELAY_STEP_S, Processes
from toolrunner.spawner.client.spawner import Launch, Launched, OnExit, SpawnerProcess
from toolrunner.spawner.client.startup import running_spawner
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.workspaces.domain.placement import HostState, Placement
from toolrunner.workspaces.domain.spec import Scratch, WorkspaceSpec
from toolrunner.workspaces.preparation import options_of

WITHIN_S = 10.0
#: One that stays, and four that detach themselves in ever more thorough ways.
DAEMONS = (
    "sleep 7501 & "
    "(setsid sleep 7502 >/dev/null 2>&1 &) ; "
    "(setsid sh -c 'trap \"\" TERM HUP INT; (sleep 7503; sleep 7503) &' >/dev/null 2>&1 &); "
    "(setsid env -i /bin/sh -c '/bin/sleep 7504 &' </dev/null >/dev/null 2>&1 &); "
    "wait"
)
MARKS = ("sleep\x007501", "sleep\x007502", "sleep\x007503", "sleep\x007504")
OTHER = "sleep\x007509"


@asynccontextmanager
async def processes_in(
    directory: Path, *, has_groups: bool, clock: Clock | None = None
) -> AsyncIterator[tuple[Processes, Workspaces]]:
    clock, workspaces = clock or SystemClock(), Workspaces(directory / "workspaces")
    new_id = TimeOrderedIds(clock, random_source())
    async with (
        running_spawner(directory, adoption_s=0, has_groups=has_groups) as spawner,
        open_journal(
            directory / "j.sqlite", new_generation="g", boot_id="b", clock=clock
        ) as journal,
        Processes(
            journal=journal,
            spawner=spawner.process,
            adopted=(),
            workspaces=workspaces,
            sandbox=UNCONFINED,
            clock=clock,
            supervision=supervision(clock),
            new_id=new_id,
            encode_started=lambda record: b"",
            cursor_of=lambda response: 0,
        ) as processes,
    ):
        yield processes, workspaces


def random_source() -> random.Random:
    return random.Random(1)


async def start(processes: Processes, workspace_id: str, command: str) -> None:
    scope = Scope(WorkspaceId(workspace_id), ChatId("c"))
    spec = ProcessSpec(
        argv=("sh", "-c", command),
        command=command,
        workdir="",
        environment={},
        is_background=False,
        timeout_s=0,
        log_bytes_max=1_000_000,
    )
    effect = Effect(workspace_id, None, "/Start", b"", lambda _: b"", scope.workspace_id)
    await processes.start(effect, scope, spec)


async def seen(*marks: str) -> None:
    await asyncio.to_thread(
        until, lambda: all(map(running, marks)), "the start of all", within_s=WITHIN_S
    )


@pytest.fixture(params=[False, True], ids=["by-proc", "by-control-groups"])
def has_groups(request: pytest.FixtureRequest) -> bool:
    wanted: bool = request.param
    if wanted:
        groups = ControlGroups.made("parley-test")
        groups.remove()
        if not groups.base:
            pytest.skip("no control groups can be made here")
    return wanted


async def test_e6_a_workspace_that_ends_takes_every_daemon_along(
    tmp_path: Path, has_groups: bool
) -> None:
    async with processes_in(tmp_path, has_groups=has_groups) as (processes, _):
        await start(processes, "ending", DAEMONS)
        await start(processes, "other", "exec sleep 7509")
        await seen(*MARKS, OTHER)
        async with asyncio.timeout(WITHIN_S):
            ended = await processes.end_workspace(WorkspaceId("ending"), grace_s=0.5)
        assert [mark for mark in MARKS if running(mark)] == []
        assert running(OTHER)
        assert ended.asked >= 5
        assert ended.killed >= 1
    assert running(OTHER) == []


async def test_an_empty_workspace_ends_at_once(tmp_path: Path, has_groups: bool) -> None:
    async with (
        asyncio.timeout(WITHIN_S),
        processes_in(tmp_path, has_groups=has_groups) as (processes, _),
    ):
        ended = await processes.end_workspace(WorkspaceId("nobody"), grace_s=60)
        assert (ended.asked, ended.killed) == (0, 0)


async def test_a_command_waits_in_a_workspace_that_was_ended_and_nowhere_else(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with (
        asyncio.timeout(WITHIN_S),
        processes_in(tmp_path, has_groups=False, clock=clock) as (processes, workspaces),
        asyncio.TaskGroup() as tasks,
    ):
        workspaces.restart_delays.note(WorkspaceId("ended"), "ann", clock.monotonic())
        delayed = tasks.create_task(start(processes, "ended", "exec sleep 7511"))
        await start(processes, "other", "exec sleep 7512")
        for _ in range(2):
            await clock.until_sleeping_for(DELAY_STEP_S)
            assert not delayed.done()
            clock.advance(DELAY_STEP_S)
        await delayed
        assert [each.workspace_id for each in processes.leaders().values()] == ["other", "ended"]


async def test_a_command_is_started_among_those_of_the_owner_of_its_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched, launch_process = [], SpawnerProcess.start

    async def recorded(spawner: SpawnerProcess, launch: Launch, on_exit: OnExit) -> Launched:
        launched.append((launch.workspace_id, launch.owner_id))
        return await launch_process(spawner, launch, on_exit)

    monkeypatch.setattr(SpawnerProcess, "start", recorded)
    scratch = Placement(
        WorkspaceId("w"), 1, "ann", HostState.READY, WorkspaceSpec(Scratch()), SystemClock().now()
    )
    async with processes_in(tmp_path, has_groups=False) as (processes, workspaces):
        workspaces.options[scratch.workspace_id] = options_of(scratch)
        await start(processes, "w", "true")
    assert launched == [("w", "ann")]


async def test_a_delayed_command_whose_caller_gives_up_is_not_started(tmp_path: Path) -> None:
    clock = FakeClock()
    async with (
        asyncio.timeout(WITHIN_S),
        processes_in(tmp_path, has_groups=False, clock=clock) as (processes, workspaces),
        asyncio.TaskGroup() as tasks,
    ):
        workspaces.restart_delays.note(WorkspaceId("ended"), "ann", clock.monotonic())
        delayed = tasks.create_task(start(processes, "ended", "exec sleep 7513"))
        await clock.until_sleeping_for(DELAY_STEP_S)
        delayed.cancel()
        await asyncio.wait((delayed,))
        clock.advance(60.0)
        await start(processes, "ended", "exec sleep 7514")
        assert len(processes.leaders()) == 1


async def test_what_a_killed_spawner_left_in_its_group_is_ended_by_the_next(
    tmp_path: Path,
) -> None:
    groups = ControlGroups.made("parley-test-left")
    if not groups.base:
        pytest.skip("no control groups can be made here")
    directory = groups.make("w", "p")
    stray = await asyncio.create_subprocess_exec("sleep", "7510")
    await asyncio.to_thread((Path(directory) / "cgroup.procs").write_text, str(stray.pid))
    again = ControlGroups.made("parley-test-left")
    async with asyncio.timeout(WITHIN_S):
        assert await stray.wait() == -9
    again.remove()
    assert again.pids() == set()
