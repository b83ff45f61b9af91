"""Nodes as they are stored: known, silent, drained, and what was placed on them."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from chatd.workspaces.domain.commands import (
    FinishPreparing,
    FinishStopping,
    Place,
    SetPolicy,
)
from chatd.workspaces.domain.errors import NoNode, StaleNode
from chatd.workspaces.domain.nodes import Capacity, Directory, Load, Need, NodeState, choose
from chatd.workspaces.domain.spec import Kind, Limits
from chatd.workspaces.domain.workspace import (
    NODE_LOST,
    State,
    StopReason,
    WorkspaceId,
)
from chatd.workspaces.engine.driver import Driver
from chatd.workspaces.engine.node_list import NodeList, static_node
from chatd.workspaces.engine.registry import Registry
from chatd.workspaces.engine.timers import WorkspaceTimers
from chatd.workspaces.store.nodes import NodePlace, PostgresNodes
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.clock import SystemClock
from parley.postgres import Pool
from support.chatd.workspaces.in_memory_host import InMemoryHost
from support.chatd.workspaces.stored_workspaces import DRIVER, HASH, IDS, LIMITS, fresh
from support.chatd.workspaces.workspace_values import NODE, node


@pytest.fixture
def store(pool: Pool) -> PostgresWorkspaces:
    return PostgresWorkspaces(pool)


@pytest.fixture
def nodes(pool: Pool) -> PostgresNodes:
    return PostgresNodes(pool)


async def test_a_node_registers_beats_and_is_known_by_its_number(nodes: PostgresNodes) -> None:
    told = node(
        name="n1",
        labels={"zone": "a"},
        directories=(Directory("home", False, True),),
        mirrors=("https://example.org/x.git",),
        journal_generation="g1",
        version="1.0",
    )
    registered = await nodes.register(told, "r1")
    assert replace(registered, registered_at=None, last_seen_at=None) == replace(
        told, registration_epoch=1
    )
    # The same request again is the same registration, another one is the next.
    assert (await nodes.register(told, "r1")).registration_epoch == 1
    assert (await nodes.register(told, "r2")).registration_epoch == 2
    with pytest.raises(StaleNode):
        await nodes.heartbeat(NODE, 1, Load())
    beating = await nodes.heartbeat(NODE, 2, Load(workspaces=3))
    assert (beating.state, beating.load) == (NodeState.ACTIVE, Load(workspaces=3))
    assert await nodes.list(NodePlace(NODE)) == ()


async def test_a_silent_node_is_lost_once_and_back_when_it_registers_again(
    nodes: PostgresNodes, pool: Pool
) -> None:
    await nodes.register(node(), "r1")
    assert await nodes.lose() == ()
    await pool.execute("UPDATE chat.nodes SET last_seen_at = now() - interval '46 s'")
    assert [each.id for each in await nodes.lose()] == [NODE]
    assert await nodes.lose() == ()
    assert (await nodes.get(NODE)).state is NodeState.LOST
    with pytest.raises(StaleNode):
        await nodes.heartbeat(NODE, 1, Load())
    assert (await nodes.register(node(), "r2")).state is NodeState.ACTIVE


async def test_a_drained_node_leaves_when_it_is_empty(
    nodes: PostgresNodes, store: PostgresWorkspaces
) -> None:
    await nodes.register(node(capacity=Capacity(3)), "r1")
    made = fresh()
    await store.add(made, HASH, LIMITS)
    await store.apply(made.id, Place(NODE))
    await store.apply(made.id, FinishPreparing(1))
    draining = await nodes.drain(NODE, 1, timedelta(0), is_leaving=True)
    assert (draining.state, draining.placed) == (NodeState.DRAINING, 1)
    workspace_timers = WorkspaceTimers(DRIVER, store, nodes, SystemClock(), jitter=lambda: 0.5)
    await workspace_timers.expire_nodes()
    stopping = await store.get(made.id)
    assert (stopping.state, stopping.stop_reason) == (State.STOPPING, StopReason.DRAIN)
    assert (await nodes.get(NODE)).state is NodeState.DRAINING
    await store.apply(made.id, FinishStopping(1))
    await workspace_timers.expire_nodes()
    assert (await nodes.get(NODE)).state is NodeState.GONE
    assert await nodes.list() == ()


async def test_a_drain_and_a_policy_are_events_of_the_audit_log(
    nodes: PostgresNodes, store: PostgresWorkspaces, pool: Pool
) -> None:
    await nodes.register(node(), "r1")
    made = fresh()
    await store.add(made, HASH, LIMITS)
    await store.apply(made.id, Place(NODE))
    await store.apply(made.id, FinishPreparing(1))
    _, changed = await store.apply(made.id, SetPolicy(limits=Limits(pids=7)))
    await nodes.drain(NODE, 1, timedelta(0), is_leaving=True)
    rows = await pool.fetch(
        "SELECT action, object_id, details::text FROM chat.audit_outbox ORDER BY at"
    )

    assert [tuple(row) for row in rows] == [
        ("workspace.policy_set", made.id, f'{{"policy": "{changed.policy}"}}'),
        ("node.drained", NODE, '{"is_leaving": "true"}'),
    ]


async def test_a_driver_makes_what_is_asked_for_on_the_node_of_the_settings(
    store: PostgresWorkspaces, nodes: PostgresNodes
) -> None:
    clock, host = SystemClock(), InMemoryHost()
    known = NodeList(nodes, ["unix:/run/static.sock"])
    driver = Driver(DRIVER, store, known, host, clock)
    made = fresh()
    await store.add(made, HASH, LIMITS)
    async with asyncio.timeout(20):
        for each in await store.claim(DRIVER, 15.0, 10):
            await driver.drive(each)
    ready = await store.get(made.id)
    assert (ready.state, host.running) == (State.READY, {made.id})
    assert ready.node_id == known.likely().id
    # Once a node registered itself, new ones go there.
    await nodes.register(node(), "r1")
    assert [each.id for each in await known.list()] == [NODE]


async def test_what_was_placed_before_its_node_registered_counts_for_it_afterwards(
    store: PostgresWorkspaces, nodes: PostgresNodes
) -> None:
    address, elsewhere = "unix:/run/early.sock", "unix:/run/elsewhere.sock"
    known = NodeList(nodes, [address, elsewhere])
    here, there = (next(IDS) for _ in range(2))
    for id, place in ((here, address), (there, elsewhere)):
        await store.add(fresh(id=WorkspaceId(id), name=id), HASH, LIMITS)
        await store.apply(id, Place(static_node(place).id))
        await store.apply(id, FinishPreparing(1))
    registered = await nodes.register(node(address=address, capacity=Capacity(1)), "r1")
    assert (await store.get(here)).node_id == registered.id
    assert (await store.get(there)).node_id == static_node(elsewhere).id
    [found] = await known.list()
    assert (found.id, found.placed) == (NODE, 1)
    with pytest.raises(NoNode):
        choose([found], Need(Kind.SCRATCH))
    # And like everything else of a node it is given up when that forgets it.
    await Registry(store, nodes).register(node(address=address), [], "r2")
    assert (await store.get(here)).failure == NODE_LOST
