"""The driver of workspaces: what it does in every state, and what survives its death."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from chatd.primitives.domain.ids import WorkerId
from chatd.workspaces.domain.commands import Command, Remove, Start, Stop
from chatd.workspaces.domain.nodes import Node, NodeState
from chatd.workspaces.domain.ports import HostRefused
from chatd.workspaces.domain.spec import Kind, Source, WorkspaceSpec
from chatd.workspaces.domain.workspace import (
    NODE_LOST,
    Failure,
    FailureKind,
    State,
    StopReason,
    Workspace,
)
from chatd.workspaces.engine.driver import PARENT_GONE, Driver
from parley.clock import FakeClock
from support.chatd.workspaces.in_memory_host import InMemoryHost
from support.chatd.workspaces.in_memory_workspaces import (
    Crash,
    CrashPlan,
    InMemoryNodes,
    InMemoryWorkspaces,
)
from support.chatd.workspaces.workspace_values import (
    NODE,
    NOON,
    OTHER_NODE,
    WORKSPACE,
    node,
    workspace,
)

FIRST, SECOND = WorkerId("driver-1"), WorkerId("driver-2")
STOP, REMOVE, START = Stop(StopReason.REQUESTED), Remove(), Start()


class Stage:
    """A control plane with one node, by a clock that stands still."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOON)
        self.store = InMemoryWorkspaces(self.clock)
        self.nodes = InMemoryNodes(self.clock, {NODE: node()})
        self.host = InMemoryHost()
        self.store.rows[WORKSPACE] = workspace()

    def driver(self, driver_id: WorkerId = FIRST) -> Driver:
        return Driver(driver_id, self.store, self.nodes, self.host, self.clock)

    async def driven(self, driver_id: WorkerId = FIRST) -> Workspace:
        """Drive what can be claimed now, and return the workspace."""
        driver = self.driver(driver_id)
        for each in await self.store.claim(driver_id, 15.0, 10):
            await driver.drive(each)
        return self.store.rows[WORKSPACE]


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_new_workspace_is_placed_and_prepared(stage: Stage) -> None:
    ready = await stage.driven()
    assert (ready.state, ready.node_id, ready.epoch) == (State.READY, NODE, 1)
    assert (ready.root_path, ready.sandbox_level) == ("/workspace", "landlock")
    assert stage.store.states == [State.PREPARING, State.READY]
    assert [line.text for line in stage.store.logs[WORKSPACE, 1].values()] == ["making it"]


async def test_a_stop_keeps_the_files_and_a_start_finds_them(stage: Stage) -> None:
    await stage.driven()
    await stage.store.apply(WORKSPACE, STOP)
    assert (await stage.driven()).state is State.STOPPED
    assert (stage.host.running, stage.host.files) == (set(), {WORKSPACE})
    await stage.store.apply(WORKSPACE, START)
    again = await stage.driven()
    assert (again.state, again.epoch, stage.host.running) == (State.READY, 2, {WORKSPACE})


async def test_a_failed_preparation_fails_the_workspace_with_its_reason(stage: Stage) -> None:
    broken = Failure(FailureKind.SETUP, "exit code 1")
    stage.host.failures[WORKSPACE] = broken
    failed = await stage.driven()
    assert (failed.state, failed.failure) == (State.FAILED, broken)
    stage.host.failures.clear()
    await stage.store.apply(WORKSPACE, START)
    assert (await stage.driven()).state is State.READY


async def test_a_node_that_does_not_answer_is_asked_again_with_the_same_request(
    stage: Stage,
) -> None:
    stage.host.away["prepare"] = 1
    stage.host.lost["prepare"] = 1
    assert (await stage.driven()).state is State.PREPARING
    # Right after the failure it rests.
    assert await stage.store.claim(SECOND, 15.0, 10) == ()
    for _ in range(2):
        stage.clock.advance(2.0)
        await stage.driven(SECOND)
    assert stage.store.rows[WORKSPACE].state is State.READY
    assert stage.host.made == Counter({(WORKSPACE, 1): 1})


async def test_a_stop_that_got_lost_is_repeated(stage: Stage) -> None:
    await stage.driven()
    await stage.store.apply(WORKSPACE, STOP)
    stage.host.lost["stop"] = 1
    assert (await stage.driven()).state is State.STOPPING
    stage.clock.advance(2.0)
    assert (await stage.driven(SECOND)).state is State.STOPPED


async def test_a_stop_in_the_middle_of_a_preparation_ends_it(stage: Stage) -> None:
    stage.host.gate.clear()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        driving = tasks.create_task(stage.driven())
        await stage.host.asked.wait()
        await stage.store.apply(WORKSPACE, STOP)
        # The next renewal of the claim sees that it moved.
        assert await stage.clock.until_sleeping() == 5.0
        stage.clock.advance(5.0)
    assert driving.result().state is State.STOPPED
    assert stage.host.made == Counter()


async def test_a_driver_whose_claim_went_to_another_leaves_the_workspace_alone(
    stage: Stage,
) -> None:
    stage.host.gate.clear()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        driving = tasks.create_task(stage.driven())
        await stage.host.asked.wait()
        stage.store.claims[WORKSPACE] = (SECOND, stage.clock.now())
        await stage.clock.until_sleeping()
        stage.clock.advance(5.0)
    assert driving.result().state is State.PREPARING
    assert stage.store.claims[WORKSPACE][0] == SECOND
    stage.host.gate.set()
    assert (await stage.driven(SECOND)).state is State.READY


async def test_a_long_preparation_keeps_its_claim(stage: Stage) -> None:
    stage.host.gate.clear()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        driving = tasks.create_task(stage.driven())
        await stage.host.asked.wait()
        for _ in range(20):
            assert await stage.clock.until_sleeping() == 5.0
            stage.clock.advance(5.0)
            assert await stage.store.claim(SECOND, 15.0, 10) == ()
        stage.host.gate.set()
    assert driving.result().state is State.READY


async def test_without_a_node_a_workspace_waits_a_while_and_then_says_why(stage: Stage) -> None:
    stage.nodes.rows.clear()
    assert (await stage.driven()).state is State.PENDING
    driver = stage.driver()
    waited_s = 0.0
    while stage.store.rows[WORKSPACE].state is State.PENDING:
        stage.clock.advance(2.0)
        waited_s += 2.0
        for each in await stage.store.claim(FIRST, 15.0, 10):
            await driver.drive(each)
    failed = stage.store.rows[WORKSPACE]
    assert failed.failure is not None
    assert (failed.failure.kind, waited_s) == (FailureKind.NO_NODE, 22.0)


async def test_a_node_of_the_settings_that_stays_silent_is_given_up(stage: Stage) -> None:
    stage.nodes.rows = {NODE: Node(NODE, "unix:/gone", is_static=True)}
    stage.host.away["prepare"] = 1000
    driver = stage.driver()
    while stage.store.rows[WORKSPACE].state is not State.FAILED:
        for each in await stage.store.claim(FIRST, 15.0, 10):
            await driver.drive(each)
        stage.clock.advance(2.0)
    assert stage.store.rows[WORKSPACE].failure == NODE_LOST
    assert stage.clock.monotonic() >= 120


async def test_nobody_waits_for_a_node_that_is_lost(stage: Stage) -> None:
    await stage.driven()
    await stage.store.apply(WORKSPACE, STOP)
    await stage.driven()
    stage.nodes.rows[NODE] = node(state=NodeState.LOST)
    await stage.store.apply(WORKSPACE, START)
    lost = await stage.driven()
    assert (lost.state, lost.failure) == (State.FAILED, NODE_LOST)
    # Started once more, it is made anew on another node.
    stage.nodes.rows[OTHER_NODE] = node(id=OTHER_NODE)
    await stage.store.apply(WORKSPACE, START)
    again = await stage.driven()
    assert (again.state, again.node_id, again.epoch) == (State.READY, OTHER_NODE, 3)


async def test_a_fork_goes_to_the_node_of_its_parent(stage: Stage) -> None:
    parent = workspace(State.READY, id="parent", node_id=OTHER_NODE, name="parent")
    stage.store.rows["parent"] = parent
    stage.nodes.rows[OTHER_NODE] = node(id=OTHER_NODE, placed=9)
    fork = replace(stage.store.rows[WORKSPACE], parent_id="parent")
    stage.store.rows[WORKSPACE] = fork
    assert (await stage.driven()).node_id == OTHER_NODE


async def test_a_fork_finds_a_node_of_its_parent_that_is_only_in_the_settings(
    stage: Stage,
) -> None:
    parent = workspace(State.READY, id="parent", node_id=OTHER_NODE, name="parent")
    stage.store.rows["parent"] = parent
    stage.nodes.unlisted[OTHER_NODE] = node(id=OTHER_NODE, is_static=True)
    stage.store.rows[WORKSPACE] = replace(stage.store.rows[WORKSPACE], parent_id="parent")
    assert (await stage.driven()).node_id == OTHER_NODE


def forked(stage: Stage, **values: object) -> Workspace:
    """Make what the stage has a fork of a workspace that is ready, and return that one."""
    parent = workspace(State.READY, id="parent", name="parent", epoch=3)
    stage.store.rows["parent"] = parent
    stage.host.epochs["parent"] = 3
    source = Source(parent_id="parent")
    stage.store.rows[WORKSPACE] = replace(
        stage.store.rows[WORKSPACE],
        kind=Kind.FORK,
        parent_id="parent",
        spec=WorkspaceSpec(Kind.FORK, source),
        **values,  # type: ignore[arg-type]
    )
    return parent


async def test_a_fork_is_made_of_its_parent_as_it_is_placed_now(stage: Stage) -> None:
    parent = forked(stage)
    # Between the request and its placement the parent was stopped and started.
    stage.store.rows["parent"] = replace(parent, epoch=5)
    stage.host.epochs["parent"] = 5
    ready = await stage.driven()
    assert (ready.state, ready.spec.source.parent_epoch) == (State.READY, 5)
    assert stage.host.parent_epochs == {WORKSPACE: 5}


async def test_a_fork_whose_parent_moves_before_it_is_made_is_placed_once_more(
    stage: Stage,
) -> None:
    forked(stage)
    # The node knows of the new placement before the fork was placed by the old one.
    stage.host.epochs["parent"] = 4
    assert (await stage.driven()).state is State.PREPARING
    stage.store.rows["parent"] = replace(stage.store.rows["parent"], epoch=4)
    stage.clock.advance(2.0)
    ready = await stage.driven()
    assert (ready.state, ready.epoch, ready.node_id) == (State.READY, 2, NODE)
    assert stage.host.parent_epochs == {WORKSPACE: 4}


async def test_a_failed_fork_is_made_again_of_its_parent_as_it_is_then(stage: Stage) -> None:
    parent = forked(stage)
    stage.host.failures[WORKSPACE] = Failure(FailureKind.NO_SPACE, "the disk is full")
    assert (await stage.driven()).state is State.FAILED
    stage.host.failures.clear()
    stage.store.rows["parent"] = replace(parent, epoch=7)
    stage.host.epochs["parent"] = 7
    await stage.store.apply(WORKSPACE, START)
    assert (await stage.driven()).state is State.READY
    assert stage.host.parent_epochs == {WORKSPACE: 7}


async def test_a_fork_of_nothing_fails_and_says_so(stage: Stage) -> None:
    parent = forked(stage)
    stage.store.rows["parent"] = replace(parent, state=State.DELETED)
    assert (await stage.driven()).failure == PARENT_GONE


async def test_a_node_that_refuses_a_removal_is_asked_again_until_it_is_done(
    stage: Stage,
) -> None:
    await stage.driven()
    await stage.store.apply(WORKSPACE, REMOVE)
    stage.host.refusals["remove"] = HostRefused("DISK_FULL", "it cannot be written down")
    assert (await stage.driven()).state is State.STOPPING
    assert stage.host.files == {WORKSPACE}
    stage.clock.advance(2.0)
    assert (await stage.driven()).state is State.DELETED
    assert stage.host.files == set()


@pytest.mark.parametrize(
    ("asked", "end"), [(STOP, State.FAILED), (REMOVE, State.DELETED)], ids=["stop", "remove"]
)
async def test_nobody_waits_for_ever_for_a_node_of_the_settings(
    stage: Stage, asked: Command, end: State
) -> None:
    stage.nodes.rows = {NODE: Node(NODE, "unix:/gone", is_static=True)}
    await stage.driven()
    await stage.store.apply(WORKSPACE, asked)
    stage.host.away["stop"] = stage.host.away["remove"] = 1000
    driver = stage.driver()
    while stage.store.rows[WORKSPACE].state is State.STOPPING:
        for each in await stage.store.claim(FIRST, 15.0, 10):
            await driver.drive(each)
        stage.clock.advance(2.0)
    assert stage.store.rows[WORKSPACE].state is end
    assert stage.clock.monotonic() >= 120


async def test_a_full_node_is_asked_again_until_it_has_room(stage: Stage) -> None:
    stage.host.refusals["prepare"] = HostRefused("NODE_FULL", "The node is full.")
    assert (await stage.driven()).state is State.PREPARING
    stage.clock.advance(2.0)
    assert (await stage.driven()).state is State.READY


async def test_room_on_a_full_node_is_not_waited_for_for_ever(stage: Stage) -> None:
    driver = stage.driver()
    while stage.store.rows[WORKSPACE].state is not State.FAILED:
        stage.host.refusals["prepare"] = HostRefused("NODE_FULL", "The node is full.")
        for each in await stage.store.claim(FIRST, 15.0, 10):
            await driver.drive(each)
        stage.clock.advance(2.0)
    failure = stage.store.rows[WORKSPACE].failure
    assert failure == Failure(FailureKind.NO_NODE, "The node is full. Start it again later.")
    assert stage.clock.monotonic() >= 60


async def test_a_driver_remembers_no_trouble_of_what_is_over(stage: Stage) -> None:
    stage.nodes.rows.clear()
    driver = stage.driver()
    for each in await stage.store.claim(FIRST, 15.0, 10):
        await driver.drive(each)
    assert len(driver._troubled_s) == 1
    await stage.store.apply(WORKSPACE, STOP)
    await driver.drive(stage.store.rows[WORKSPACE])
    assert driver._troubled_s == {}


LIVES: dict[str, tuple[Command, ...]] = {
    "made": (),
    "stopped": (STOP,),
    "started again": (STOP, START),
    "removed": (REMOVE,),
    "stopped and removed": (STOP, REMOVE),
    "started again and removed": (STOP, START, REMOVE),
}
ENDS = {
    "made": (State.READY, 1),
    "stopped": (State.STOPPED, 1),
    "started again": (State.READY, 2),
    "removed": (State.DELETED, 1),
    "stopped and removed": (State.DELETED, 1),
    "started again and removed": (State.DELETED, 2),
}


async def survived(act: Callable[[], Awaitable[object]], stage: Stage) -> None:
    """Do something in a process that may die of it; another one does it again then."""
    try:
        await act()
    except Crash:
        stage.store.crash = CrashPlan()
        stage.clock.advance(16.0)
        await act()


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
async def test_a_life_is_the_same_wherever_a_chatd_dies(life: str, is_before: bool) -> None:
    writes = 0
    while True:
        stage = Stage()
        stage.store.crash = plan = CrashPlan(writes, is_before)
        drivers = iter([FIRST, SECOND] * 20)
        await survived(lambda: stage.driven(next(drivers)), stage)  # noqa: B023
        for command in LIVES[life]:
            await survived(lambda: stage.store.apply(WORKSPACE, command), stage)  # noqa: B023
            await survived(lambda: stage.driven(next(drivers)), stage)  # noqa: B023
        final = stage.store.rows[WORKSPACE]
        state, epoch = ENDS[life]
        assert (final.state, final.epoch) == (state, epoch)
        # Nothing was made twice, and what runs is what should.
        assert stage.host.made == Counter({(WORKSPACE, n): 1 for n in range(1, epoch + 1)})
        assert stage.host.running == ({WORKSPACE} if state is State.READY else set())
        assert stage.host.files == (set() if state is State.DELETED else {WORKSPACE})
        if stage.store.crash is plan:
            break  # Nobody died: there are no more writes.
        writes += 1
    assert writes == 2 + 2 * len(LIVES[life])
