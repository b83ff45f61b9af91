"""Policies that change while workspaces run: nodes are told until they go by them."""

import asyncio

import pytest

from chatd.primitives.domain.ids import WorkerId
from chatd.workspaces.domain.commands import Grant, SetPolicy, Stop
from chatd.workspaces.domain.nodes import NodeState
from chatd.workspaces.domain.ports import HostRefused
from chatd.workspaces.domain.spec import Limits, Network, NetworkPolicy
from chatd.workspaces.domain.workspace import State, StopReason, Workspace
from chatd.workspaces.engine.driver import Driver
from chatd.workspaces.engine.policies import Policies
from parley.clock import FakeClock
from support.chatd.workspaces.in_memory_host import InMemoryHost
from support.chatd.workspaces.in_memory_workspaces import InMemoryNodes, InMemoryWorkspaces
from support.chatd.workspaces.workspace_values import NODE, NOON, WORKSPACE, node, workspace

OPEN = NetworkPolicy(Network.OPEN)
SMALL = Limits(pids=10)
ME = WorkerId("w")


class Stage:
    """A workspace that is ready, and whoever tells its node."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOON)
        self.store = InMemoryWorkspaces(self.clock, {WORKSPACE: workspace(State.READY)})
        self.nodes = InMemoryNodes(self.clock, {NODE: node()})
        self.host = InMemoryHost()
        self.policies = Policies(self.store, self.nodes, self.host)

    @property
    def row(self) -> Workspace:
        return self.store.rows[WORKSPACE]

    @property
    def told(self) -> list[int]:
        return self.host.policies[WORKSPACE]


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_node_is_told_of_a_policy_once(stage: Stage) -> None:
    await stage.policies.publish_all()
    await stage.store.apply(WORKSPACE, SetPolicy(network=OPEN))
    await stage.store.apply(WORKSPACE, SetPolicy(limits=SMALL))
    assert (stage.row.spec.network, stage.row.spec.limits) == (OPEN, SMALL)
    for _ in range(2):
        await stage.policies.publish_all()
    assert (stage.told, stage.row.policy_told) == ([2], 2)
    # The same once more is no change.
    await stage.store.apply(WORKSPACE, SetPolicy(OPEN, SMALL))
    assert stage.row.policy == 2


async def test_a_node_that_does_not_answer_is_told_when_it_does(stage: Stage) -> None:
    _, granted = await stage.store.apply(WORKSPACE, Grant(("deploy",)))
    stage.host.away["update_policy"] = 1
    await stage.policies.publish(granted)
    assert (stage.told, stage.row.policy_told) == ([], 0)
    stage.nodes.rows[NODE] = node(state=NodeState.LOST)
    await stage.policies.publish_all()
    assert stage.told == []
    stage.nodes.rows[NODE] = node()
    # It is done, and nobody hears of it: done twice it is the same.
    stage.host.lost["update_policy"] = 1
    for _ in range(3):
        await stage.policies.publish_all()
    assert (stage.told, stage.row.policy_told) == ([1, 1], 1)


async def test_a_node_that_refuses_is_not_asked_for_ever(stage: Stage) -> None:
    await stage.store.apply(WORKSPACE, SetPolicy(network=OPEN))
    stage.host.refusals["update_policy"] = HostRefused("UNIMPLEMENTED", "it cannot")
    for _ in range(2):
        await stage.policies.publish_all()
    assert (stage.told, stage.row.policy_told) == ([], 1)


async def test_what_changes_while_a_workspace_is_made_is_told_when_it_is_ready(
    stage: Stage,
) -> None:
    stage.store.rows[WORKSPACE] = workspace()
    stage.host.gate.clear()
    driver = Driver(ME, stage.store, stage.nodes, stage.host, stage.clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        (claimed,) = await stage.store.claim(ME, 15.0, 1)
        driving = tasks.create_task(driver.drive(claimed))
        await stage.host.asked.wait()
        await stage.store.apply(WORKSPACE, SetPolicy(network=OPEN))
        await stage.policies.publish_all()
        stage.host.gate.set()
    assert (driving.result().state, stage.told) == (State.READY, [])
    await stage.policies.publish_all()
    assert stage.told == [1]


async def test_a_stopped_workspace_is_started_with_the_policy_that_it_has_then(
    stage: Stage,
) -> None:
    await stage.store.apply(WORKSPACE, Stop(StopReason.REQUESTED))
    _, changed = await stage.store.apply(WORKSPACE, SetPolicy(network=OPEN))
    await stage.policies.publish(changed)
    await stage.policies.publish_all()
    assert (stage.told, stage.row.policy) == ([], 1)
