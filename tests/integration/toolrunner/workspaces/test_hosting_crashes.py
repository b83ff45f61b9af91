"""A node that is killed at every step of a workspace's life: the next run goes on where it was."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import workspace_pb2
from parley.testing.faultpoints import Action
from support.faults.points import FaultPoints
from support.host.conditions import until
from support.toolrunner.files import Files
from support.toolrunner.hosted_workspaces import Placer, Repository, fork, git, local, scratch
from support.toolrunner.node import House, connected, running, toolrunner
from support.toolrunner.turn_files import ChatTurns, outcomes

WITHIN_S = 30.0
#: What must be so in the end, and what is done meanwhile.
Check = tuple[Callable[["Placer"], Awaitable[None]], Callable[[], Awaitable[object]]]
PREPARING = ("prepare.placed", "prepare.made", "prepare.sourced", "prepare.set_up", "prepare.done")


@pytest.fixture
def points(tmp_path: Path) -> FaultPoints:
    (tmp_path / "points").mkdir()
    return FaultPoints(tmp_path / "points")


@pytest.fixture
def house(tmp_path_factory: pytest.TempPathFactory, points: FaultPoints) -> House:
    house = House.build(tmp_path_factory.mktemp("h"))
    house.settings["TOOLRUNNER_GIT_PROTOCOLS"] = "file"
    house.settings["TOOLRUNNER_FAULTPOINTS_DIRECTORY"] = str(points.directory)
    house.settings["TOOLRUNNER_ENVIRONMENT"] = "development"
    return house


@asynccontextmanager
async def placed(house: House) -> AsyncIterator[Placer]:
    async with toolrunner(house), connected(house) as client:
        yield Placer(client, house.data)


@asynccontextmanager
async def dying(house: House, points: FaultPoints) -> AsyncIterator[Placer]:
    """Have a toolrunner that dies at the point that is armed meanwhile."""
    async with toolrunner(house) as process, connected(house) as client:
        yield Placer(client, house.data)
        async with asyncio.timeout(WITHIN_S):
            await process.wait()
    points.disarm()


async def cut_off(call: Awaitable[object]) -> None:
    """Make a call in the middle of which the node dies."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_preparation_is_gone_on_with_whenever_the_node_is_killed(
    house: House, points: FaultPoints, tmp_path: Path
) -> None:
    repository = Repository.made(tmp_path / "r")
    commit = repository.commit(a_txt="one\n")
    spec = git(repository.url, branch="work")
    spec.setup_script = "echo ran >> ../home/runs; echo said"
    begun: list[tuple[str, str]] = []
    for point in PREPARING:
        async with dying(house, points) as placer:
            for workspace_id, request_id in begun:
                again = await placer.prepare(workspace_id, spec, request_id=request_id)
                assert (again.end.prepared.git_commit, again.lines[-1]) == (commit, "said")
            begun.append((placer.new_id(), placer.new_id()))
            workspace_id, request_id = begun[-1]
            points.arm(point, Action.KILL)
            await cut_off(placer.prepare(workspace_id, spec, request_id=request_id))
    async with placed(house) as placer:
        for workspace_id, request_id in begun:
            again = await placer.prepare(workspace_id, spec, request_id=request_id)
            assert again.end.prepared.git_commit == commit
            assert again.sequences == tuple(range(1, len(again.lines) + 1))
            home = placer.root(workspace_id).parent / "home"
            assert (home / "runs").read_text() == "ran\n"
        assert set((await placer.states()).values()) == {"ready"}


async def test_a_setup_script_goes_on_while_its_node_is_killed_and_started_again(
    house: House,
) -> None:
    spec = scratch("echo one; while ! [ -e go ]; do sleep 0.02; done; echo two")
    async with toolrunner(house) as process, connected(house) as client:
        placer = Placer(client, house.data)
        workspace_id, request_id = placer.new_id(), placer.new_id()
        log = house.data / "preparations" / f"{workspace_id}.jsonl"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(cut_off(placer.prepare(workspace_id, spec, request_id=request_id)))
            await asyncio.to_thread(until, log.exists, "the first line", within_s=WITHIN_S)
            process.kill()
    async with placed(house) as placer:
        (placer.root(workspace_id) / "go").touch()
        again = await placer.prepare(workspace_id, spec, request_id=request_id)
        assert (again.kind, again.lines) == ("prepared", ("one", "two"))


async def test_an_overlay_is_found_again_and_goes_with_its_workspace(
    house: House, tmp_path: Path
) -> None:
    offered = tmp_path / "offered"
    offered.mkdir()
    (offered / "below").write_text("below")
    house.settings["TOOLRUNNER_LOCAL_DIRECTORIES"] = f"it={offered}"
    spec = local("it", overlay=True)
    async with toolrunner(house) as process, connected(house) as client:
        placer = Placer(client, house.data)
        workspace_id = await placer.ready(spec)
        (placer.root(workspace_id) / "above").write_text("above")
        process.kill()
    async with placed(house) as placer:
        placer.enter(workspace_id)
        told = await placer.client.run("cat above below")
        assert told.output.text == "abovebelow"
    async with placed(house) as placer:
        placer.enter(workspace_id)
        told = await placer.client.run("cat above below")
        assert told.output.text == "abovebelow"
        await placer.remove(workspace_id)
        assert not placer.root(workspace_id).parent.exists()
    assert [path.name for path in offered.iterdir()] == ["below"]


async def stopping(placer: Placer) -> Check:
    """Begin to stop a workspace; return what must be so in the end."""
    workspace_id, request_id = await placer.ready(scratch(a="one")), placer.new_id()
    placer.enter(workspace_id)
    await placer.client.run("(setsid sleep 8201 >/dev/null 2>&1 &)")

    async def check(placer: Placer) -> None:
        await placer.stop(workspace_id, request_id=request_id)
        assert ((await placer.states())[workspace_id], running("sleep\x008201")) == ("stopped", [])
        again = await placer.prepare(workspace_id, scratch(), epoch=2, must_exist=True)
        assert again.kind == "prepared"
        assert (placer.root(workspace_id) / "a").read_text() == "one"

    return check, lambda: placer.stop(workspace_id, request_id=request_id)


async def removing(placer: Placer) -> Check:
    """Begin to remove a workspace; return what must be so in the end."""
    workspace_id, request_id = await placer.ready(scratch(a="one")), placer.new_id()

    async def check(placer: Placer) -> None:
        await placer.remove(workspace_id, request_id=request_id)
        assert workspace_id not in await placer.states()
        assert not placer.root(workspace_id).parent.exists()
        assert os.listdir(placer.house_data / "trash") == []

    return check, lambda: placer.remove(workspace_id, request_id=request_id)


async def merging(placer: Placer) -> Check:
    """Begin to merge a fork; return what must be so in the end."""
    parent_id = await placer.ready(scratch(a="one", b="two"))
    fork_id, request_id = await placer.ready(fork(parent_id)), placer.new_id()
    (placer.root(fork_id) / "a").write_text("changed")
    (placer.root(fork_id) / "b").unlink()
    (placer.root(fork_id) / "c").write_text("new")
    chat_id = placer.client.chat_id

    async def merge(placer: Placer) -> workspace_pb2.MergeReport:
        return await placer.merge(
            fork_id, parent_id, request_id=request_id, chat_id=chat_id, turn_id=7, owner_epoch=1
        )

    async def check(placer: Placer) -> None:
        report = await merge(placer)
        assert (report.applied, list(report.merged_paths)) == (True, ["a", "b", "c"])
        root = placer.root(parent_id)
        merged = {name: (root / name).read_text() for name in os.listdir(root)}
        assert merged == {"a": "changed", "c": "new"}
        placer.enter(parent_id)
        placer.client.chat_id = chat_id
        shown = await ChatTurns(placer.client, Files(placer.client, root)).preview(7)
        assert outcomes(shown) == dict.fromkeys("abc", "restored")

    return check, lambda: merge(placer)


async def test_whatever_was_begun_is_ended_by_the_next_run(
    house: House, points: FaultPoints, marks: list[str]
) -> None:
    marks.append("sleep\x008201")
    check: Callable[[Placer], Awaitable[None]] | None = None
    for point, begin in (
        ("stop.begun", stopping),
        ("stop.ended", stopping),
        ("remove.begun", removing),
        ("remove.thrown", removing),
        ("merge.staged", merging),
        ("merge.decided", merging),
        ("merge.applied", merging),
    ):
        async with dying(house, points) as placer:
            if check is not None:
                await check(placer)
            check, act = await begin(placer)
            points.arm(point, Action.KILL)
            await cut_off(act())
    assert check is not None
    async with placed(house) as placer:
        await check(placer)
