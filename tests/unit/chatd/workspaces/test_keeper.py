"""What time brings for workspaces: autostop, warnings, activity, deletion, lost nodes."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from chatd.primitives.domain.ids import WorkerId
from chatd.workspaces.domain.nodes import NodeState
from chatd.workspaces.domain.workspace import NODE_LOST, State, StopReason
from chatd.workspaces.engine.timers import WorkspaceTimers
from parley.clock import FakeClock
from support.chatd.workspaces.in_memory_workspaces import InMemoryNodes, InMemoryWorkspaces
from support.chatd.workspaces.workspace_values import NODE, NOON, WORKSPACE, node, workspace

ME = WorkerId("worker-1")
MINUTE_S, HOUR_S = 60.0, 3600.0


class Stage:
    def __init__(self) -> None:
        self.clock = FakeClock(NOON)
        self.store = InMemoryWorkspaces(self.clock)
        self.nodes = InMemoryNodes(
            self.clock, {NODE: node(last_seen_at=NOON)}, lost=self.store.lost
        )
        self.workspace_timers = WorkspaceTimers(
            ME, self.store, self.nodes, self.clock, jitter=lambda: 0.5
        )
        self.store.rows[WORKSPACE] = workspace(State.READY)

    @property
    def state(self) -> State:
        return self.store.rows[WORKSPACE].state


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_an_unused_workspace_is_warned_of_and_then_stopped(stage: Stage) -> None:
    stage.clock.advance(2 * HOUR_S - 5 * MINUTE_S - 1)
    await stage.workspace_timers.apply_deadlines()
    assert stage.store.rows[WORKSPACE].warned_for is None
    stage.clock.advance(1)
    await stage.workspace_timers.apply_deadlines()
    warned = stage.store.rows[WORKSPACE]
    assert (warned.state, warned.warned_for) == (State.READY, warned.deadline_at)
    version = warned.version
    stage.clock.advance(4 * MINUTE_S)
    await stage.workspace_timers.apply_deadlines()
    assert stage.store.rows[WORKSPACE].version == version
    stage.clock.advance(MINUTE_S)
    await stage.workspace_timers.apply_deadlines()
    stopping = stage.store.rows[WORKSPACE]
    assert (stopping.state, stopping.stop_reason) == (State.STOPPING, StopReason.AUTOSTOP)


async def test_a_workspace_lives_while_its_chat_works_and_stops_after_its_last_hour(
    stage: Stage,
) -> None:
    """The whole loop by the clock: 3 hours of work in a workspace that lives 2."""
    stage.store.working[ME] = [WORKSPACE]
    stage.nodes.rows.clear()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(stage.workspace_timers.run())
        while stage.state is State.READY and stage.clock.monotonic() < 10 * HOUR_S:
            delay_s = await stage.clock.until_sleeping()
            stage.clock.advance(delay_s)
            await stage.clock.until_sleeping()
            if stage.clock.monotonic() >= 3 * HOUR_S:
                stage.store.working.clear()
        running.cancel()
    assert stage.state is State.STOPPING
    # Work ended after 3 hours; the last push that was worth a write came at most 3 minutes before.
    assert 3.95 * HOUR_S - 60 <= stage.clock.monotonic() <= 4 * HOUR_S + 60


async def test_what_was_kept_long_enough_is_removed(stage: Stage) -> None:
    stage.store.rows[WORKSPACE] = workspace(State.STOPPED, delete_at=NOON + timedelta(days=7))
    stage.clock.advance(7 * 24 * HOUR_S - 1)
    await stage.workspace_timers.apply_deadlines()
    assert stage.state is State.STOPPED
    stage.clock.advance(1)
    await stage.workspace_timers.apply_deadlines()
    removing = stage.store.rows[WORKSPACE]
    assert (removing.state, removing.is_removing) == (State.STOPPING, True)


async def test_a_node_that_falls_silent_is_lost_and_its_workspaces_say_so(stage: Stage) -> None:
    stage.clock.advance(45)
    await stage.workspace_timers.expire_nodes()
    assert stage.state is State.READY
    stage.clock.advance(1)
    await stage.workspace_timers.expire_nodes()
    lost = stage.store.rows[WORKSPACE]
    assert (lost.state, lost.failure, lost.node_id) == (State.FAILED, NODE_LOST, NODE)
    assert stage.nodes.rows[NODE].state is NodeState.LOST


async def test_a_node_that_is_taken_out_is_emptied_in_its_time(stage: Stage) -> None:
    draining = replace(
        stage.nodes.rows[NODE],
        state=NodeState.DRAINING,
        drain_at=NOON + timedelta(seconds=30),
        is_leaving=True,
    )
    stage.nodes.rows[NODE] = draining
    await stage.workspace_timers.expire_nodes()
    assert stage.state is State.READY
    stage.clock.advance(30)
    await stage.workspace_timers.expire_nodes()
    stopping = stage.store.rows[WORKSPACE]
    assert (stopping.state, stopping.stop_reason) == (State.STOPPING, StopReason.DRAIN)
