"""What nodes report of their workspaces: what follows from it, and what they are told to do."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from chatd.workspaces.domain.nodes import Load
from chatd.workspaces.domain.workspace import (
    NODE_LOST,
    Failure,
    FailureKind,
    State,
    Usage,
    Workspace,
    WorkspaceId,
)
from chatd.workspaces.engine.registry import (
    BROKEN,
    FILES_GONE,
    Hosted,
    Instruction,
    Order,
    Registry,
)
from parley.clock import FakeClock
from support.chatd.workspaces.in_memory_workspaces import InMemoryNodes, InMemoryWorkspaces
from support.chatd.workspaces.workspace_values import (
    NODE,
    NOON,
    OTHER_NODE,
    WORKSPACE,
    node,
    workspace,
)

SETUP = Failure(FailureKind.SETUP, "exit code 1")
RUNNING = (State.PREPARING, State.READY, State.BUSY)
AT_REST = (State.STOPPED, State.FAILED)


class Stage:
    """A registry with one node that has registered."""

    def __init__(self, *rows: Workspace) -> None:
        self.clock = FakeClock(NOON)
        self.store = InMemoryWorkspaces(self.clock, {row.id: row for row in rows})
        self.nodes = InMemoryNodes(self.clock, {NODE: node()})
        self.registry = Registry(self.store, self.nodes)

    @property
    def row(self) -> Workspace:
        return self.store.rows[WORKSPACE]

    async def told(self, *hosted: Hosted) -> list[Instruction]:
        """Hear a heartbeat, and return what the node is told."""
        _, orders = await self.registry.heartbeat(NODE, 1, Load(), hosted)
        assert all(isinstance(order, Order) for order in orders)
        return [order.instruction for order in orders]


def hosted(state: State, epoch: int = 1, **values: object) -> Hosted:
    return replace(Hosted(WORKSPACE, epoch, state), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [*RUNNING, *AT_REST, State.STOPPING])
async def test_what_is_deleted_is_removed_wherever_it_still_is(state: State) -> None:
    stage = Stage(workspace(State.DELETED))
    assert await stage.told(hosted(state)) == [Instruction.REMOVE]
    assert await stage.told(hosted(State.DELETED)) == []


@pytest.mark.parametrize(("here", "there"), list(product(AT_REST, RUNNING)))
async def test_what_does_not_run_here_does_not_run_there(here: State, there: State) -> None:
    stage = Stage(workspace(here, failure=SETUP if here is State.FAILED else None))
    before = stage.row
    assert await stage.told(hosted(there)) == [Instruction.STOP]
    assert stage.row == before


async def test_what_was_lost_while_it_was_made_is_stopped_when_its_node_is_back() -> None:
    stage = Stage(workspace(State.FAILED, started_at=None, has_files=False))
    assert stage.row.failure == NODE_LOST
    assert await stage.told(hosted(State.READY)) == [Instruction.STOP]


async def test_what_was_lost_and_is_there_again_is_found() -> None:
    stage = Stage(workspace(State.FAILED))
    assert await stage.told(hosted(State.BUSY)) == []
    assert (stage.row.state, stage.row.failure) == (State.READY, None)
    stage = Stage(workspace(State.FAILED))
    assert await stage.told(hosted(State.STOPPED)) == []
    assert stage.row.state is State.STOPPED


@pytest.mark.parametrize("state", [State.READY, State.BUSY])
async def test_what_runs_here_and_not_there_lapses(state: State) -> None:
    ends = {
        State.STOPPED: (State.STOPPED, None),
        State.FAILED: (State.FAILED, BROKEN),
        State.DELETED: (State.FAILED, FILES_GONE),
    }
    for there, end in ends.items():
        stage = Stage(workspace(state))
        assert await stage.told(hosted(there)) == []
        assert (stage.row.state, stage.row.failure) == end
    stage = Stage(workspace(state))
    await stage.told(hosted(State.FAILED, failure=SETUP))
    assert stage.row.failure == SETUP
    # Of an older placement that is no news.
    stage = Stage(workspace(state, epoch=2))
    assert await stage.told(hosted(State.STOPPED)) == []
    assert stage.row.state is state


async def test_what_lives_elsewhere_by_now_is_removed() -> None:
    stage = Stage(workspace(State.READY, node_id=OTHER_NODE, epoch=2))
    for state in (*RUNNING, *AT_REST):
        assert await stage.told(hosted(state)) == [Instruction.REMOVE]
    assert await stage.told(hosted(State.READY, epoch=2)) == []


async def test_what_nobody_knows_is_stopped_and_its_files_are_left_alone() -> None:
    stage = Stage()
    assert await stage.told(hosted(State.READY)) == [Instruction.STOP]
    assert await stage.told(hosted(State.STOPPED)) == []


async def test_what_files_take_is_learnt_of_stopped_ones_too() -> None:
    stage = Stage(workspace(State.STOPPED))
    assert await stage.told(hosted(State.STOPPED, usage=Usage(disk_bytes=7, pids=3))) == []
    assert stage.row.usage == Usage(disk_bytes=7)


async def test_a_node_that_registers_without_a_workspace_has_lost_it() -> None:
    other = replace(workspace(State.READY), id=WorkspaceId("other"), name="other")
    stage = Stage(workspace(State.READY), other)
    await stage.registry.register(node(), [hosted(State.READY)], "r1")
    assert (stage.row.state, stage.store.rows["other"].failure) == (State.READY, NODE_LOST)


async def test_a_report_is_read_at_once_however_many_it_is_about() -> None:
    many = [replace(workspace(State.READY), id=WorkspaceId(f"w{n}")) for n in range(50)]
    stage = Stage(*many)
    later = NOON + timedelta(minutes=30)
    stage.clock.advance(1800)
    await stage.told(*(Hosted(each.id, 1, State.BUSY, 1, used_at=later) for each in many))
    assert stage.store.reads == 1
    assert {row.state for row in stage.store.rows.values()} == {State.BUSY}
    await stage.registry.register(node(), [], "r1")
    assert stage.store.reads == 2
