"""Reports of nodes over a real database: one look and one write, and nothing is lost of them."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from chatd.chats.domain.chat import ChatState, Status
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, WorkerId
from chatd.workspaces.domain.commands import (
    FinishPreparing,
    MarkNodeLost,
    Place,
    Report,
    Stop,
    Use,
    Warn,
)
from chatd.workspaces.domain.nodes import Load
from chatd.workspaces.domain.quota import QuotaLimits
from chatd.workspaces.domain.workspace import (
    NODE_LOST,
    State,
    StopReason,
    Usage,
    Workspace,
    WorkspaceId,
)
from chatd.workspaces.engine.registry import Hosted, Registry
from chatd.workspaces.engine.timers import WorkspaceTimers
from chatd.workspaces.store.nodes import PostgresNodes
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.clock import SystemClock
from parley.postgres import Pool
from support.chatd.chats.chat_rows import insert_chat as insert_state
from support.chatd.workspaces.workspace_values import ANN, NODE, node, workspace
from support.database.counted_pool import CountedPool

WORKER = WorkerId("00000000-0000-0000-0000-0000000000dd")
BOB = OwnerId("00000000-0000-0000-0000-00000000000b")
IDS = (f"00000000-0000-4000-9000-{number:012}" for number in count())
NO_LIMITS = QuotaLimits(live_workspaces=0, workspaces=0)
MANY = 50


@pytest.fixture
def counted(pool: Pool) -> Any:
    return CountedPool(pool)


@pytest.fixture
def told() -> list[Workspace]:
    return []


@pytest.fixture
def store(counted: Any, told: list[Workspace]) -> PostgresWorkspaces:
    return PostgresWorkspaces(counted, told.append)


@pytest.fixture
def nodes(counted: Any) -> PostgresNodes:
    return PostgresNodes(counted)


async def ready(
    store: PostgresWorkspaces, number: int, owner_id: OwnerId = ANN
) -> tuple[WorkspaceId, ...]:
    """Return workspaces that are ready on the node."""
    made = [
        workspace(id=WorkspaceId(next(IDS)), name=f"w{index}", owner_id=owner_id)
        for index in range(number)
    ]
    for each in made:
        await store.add(each, b"", NO_LIMITS)
        await store.apply(each.id, Place(NODE))
        await store.apply(each.id, FinishPreparing(1))
    return tuple(each.id for each in made)


async def test_a_report_costs_one_look_and_one_write_however_many_it_is_about(
    store: PostgresWorkspaces, nodes: PostgresNodes, counted: Any, told: list[Workspace]
) -> None:
    registry = Registry(store, nodes)
    await registry.register(node(), (), "r1")
    ids = await ready(store, MANY)
    report = [
        Hosted(each, 1, State.BUSY, 1, Usage(disk_bytes=number), SystemClock().now())
        for number, each in enumerate(ids)
    ]
    told.clear()
    counted.statements.clear()
    _, orders = await registry.heartbeat(NODE, 1, Load(), report)
    assert (orders, len(counted.statements)) == ((), 3), counted.statements
    assert [each.split()[0] for each in counted.statements] == ["UPDATE", "SELECT", "WITH"]
    assert sorted(each.id for each in told) == sorted(ids)
    for number, each in enumerate(ids):
        row = await store.get(each)
        assert (row.state, row.usage) == (State.BUSY, Usage(disk_bytes=number))
    # What is no news is looked at and not written.
    counted.statements.clear()
    await registry.heartbeat(NODE, 1, Load(), report)
    assert len(counted.statements) == 2
    # Nor is anything looked at if nothing is told.
    counted.statements.clear()
    await registry.heartbeat(NODE, 1, Load(), ())
    assert len(counted.statements) == 1
    # All of it is gone but one: also that is found and written at once.
    counted.statements.clear()
    await registry.register(node(), report[:1], "r2")
    assert len(counted.statements) == 3
    assert [(await store.get(each)).failure for each in ids[1:]] == [NODE_LOST] * (MANY - 1)


async def test_what_somebody_else_wrote_meanwhile_is_decided_on_anew(
    store: PostgresWorkspaces, pool: Pool
) -> None:
    moved, still, gone = await ready(store, 3)
    seen = await store.hosted(NODE, (moved, still, gone), is_all=False)
    await store.apply(moved, Use())
    await store.apply(moved, Report(1, True, Usage(disk_bytes=1)))
    await store.apply(gone, Stop(StopReason.REQUESTED))
    news = Report(1, True, Usage(disk_bytes=2))
    await store.apply_all((each, news) for each in seen.values())
    rows = [await store.get(each) for each in (moved, still, gone)]
    assert [(row.state, row.usage) for row in rows] == [
        (State.BUSY, Usage(disk_bytes=2)),
        (State.BUSY, Usage(disk_bytes=2)),
        (State.STOPPING, None),
    ]


async def test_two_reports_about_the_same_workspaces_do_not_wait_for_each_other(
    pool: Pool, store: PostgresWorkspaces
) -> None:
    ids = await ready(store, 20)
    stores = [PostgresWorkspaces(pool) for _ in range(4)]

    async def report(one: PostgresWorkspaces, order: Callable[[Any], Any], number: int) -> None:
        for step in range(5):
            seen = order((await one.hosted(NODE, ids, is_all=False)).values())
            usage = Usage(disk_bytes=100 * number + step)
            await one.apply_all((each, Report(1, True, usage)) for each in seen)

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for number, one in enumerate(stores):
            order = list if number % 2 else lambda seen: list(reversed(list(seen)))
            tasks.create_task(report(one, order, number))
    assert {(await store.get(each)).state for each in ids} == {State.BUSY}


async def test_every_column_that_a_command_may_change_is_written_at_once_as_alone(
    store: PostgresWorkspaces,
) -> None:
    alone, together = await ready(store, 2)
    for command in (Report(1, True, Usage(1, 2, 3, 4, 5, 6)), Warn(), MarkNodeLost(NODE)):
        await store.apply(alone, command)
        seen = await store.hosted(NODE, (together,), is_all=False)
        await store.apply_all([(seen[together], command)])
        one, other = await store.get(alone), await store.get(together)
        assert (one.state, one.usage, one.failure) == (other.state, other.usage, other.failure)
        assert one.version == other.version
        assert (one.warned_for is None) == (other.warned_for is None)


async def test_a_chatd_that_dies_after_it_found_a_node_lost_leaves_nothing_behind(
    store: PostgresWorkspaces, nodes: PostgresNodes, pool: Pool
) -> None:
    await nodes.register(node(), "r1")
    ids = await ready(store, 3)
    await pool.execute("UPDATE chat.nodes SET last_seen_at = now() - interval '46 s'")
    # The first chatd calls it lost, and dies.
    assert [each.id for each in await nodes.lose()] == [NODE]
    await workspace_timers(store, nodes).expire_nodes()
    assert [(await store.get(each)).failure for each in ids] == [NODE_LOST] * 3


async def test_users_who_are_locked_out_have_nothing_running_and_deleted_ones_nothing_at_all(
    store: PostgresWorkspaces, nodes: PostgresNodes, pool: Pool
) -> None:
    (running,) = await ready(store, 1)
    (gone,) = await ready(store, 1, BOB)
    await workspace_timers(store, nodes).remove_orphans()
    assert {(await store.get(each)).state for each in (running, gone)} == {State.READY}
    bar = "INSERT INTO chat.suspended_users VALUES ($1, $2, now())"
    await pool.execute(bar, ANN, False)
    await pool.execute(bar, BOB, True)
    for _ in range(2):
        await workspace_timers(store, nodes).remove_orphans()
    stopping, removing = await store.get(running), await store.get(gone)
    assert (stopping.state, stopping.stop_reason) == (State.STOPPING, StopReason.OWNER_GONE)
    assert (stopping.is_removing, removing.is_removing) == (False, True)


async def test_the_chats_of_a_worker_keep_all_their_workspaces_in_use_with_one_write(
    store: PostgresWorkspaces, counted: Any
) -> None:
    ids = await ready(store, 10)
    await counted.execute("UPDATE chat.workspaces SET last_used_at = now() - interval '1 h'")
    seen = await store.hosted(NODE, ids, is_all=False)
    counted.statements.clear()
    await store.apply_all((each, Use()) for each in seen.values())
    assert len(counted.statements) == 1
    used = [(await store.get(each)).last_used_at for each in ids]
    assert min(used) > SystemClock().now() - timedelta(minutes=1)


async def test_scratch_workspaces_that_nobody_uses_make_room_on_a_nearly_full_node(
    store: PostgresWorkspaces, nodes: PostgresNodes, pool: Pool
) -> None:
    await nodes.register(node(), "r1")  # With room for ten.
    running = ChatId(next(IDS))
    state = ChatState(running, Status.WAITING, 1, 1, 0, MessageId(1))
    await insert_state(pool, state, Owner(ANN, "member"))
    await pool.execute("UPDATE chat.chat_exec SET status = 'running' WHERE chat_id = $1", running)
    made = await ready(store, 8)
    scratch = "UPDATE chat.workspaces SET is_scratch_of_chat = true, last_used_at = now()"
    await pool.execute(f"{scratch}, started_at = now() - interval '1 min' WHERE name <> 'w0'")
    await pool.execute(
        "UPDATE chat.workspaces SET last_used_at = now() - interval '1 h' WHERE id = $1", made[3]
    )
    await workspace_timers(store, nodes).stop_idle_scratch()
    assert {(await store.get(each)).state for each in made} == {State.READY}
    # One more, in the scratch of a chat that runs: then two too many are there.
    await store.add_scratch(workspace(id=WorkspaceId(running), name="busy"), WORKER, 1.0)
    await store.apply(running, Place(NODE))
    await store.apply(running, FinishPreparing(1))
    await pool.execute(
        "UPDATE chat.workspaces SET is_scratch_of_chat = true,"
        " started_at = now() - interval '1 h', last_used_at = now() - interval '2 h'"
        " WHERE id = $1",
        running,
    )
    bind = "UPDATE chat.chats SET workspace_id = $2 WHERE id = $1"
    await pool.execute(bind, running, made[3])
    await pool.execute(
        "UPDATE chat.workspaces SET last_used_at = now() - interval '1 min' WHERE id = $1", made[4]
    )
    assert [each.workspace.id for each in await store.idle_scratch(timedelta(0))] == [made[4]]
    await pool.execute(bind, running, None)
    await workspace_timers(store, nodes).stop_idle_scratch()
    stopping = [each for each in made if (await store.get(each)).state is State.STOPPING]
    assert stopping == [made[3]]
    assert (await store.get(made[3])).stop_reason is StopReason.QUOTA
    assert (await store.get(running)).state is State.READY
    assert (await store.get(made[0])).state is State.READY


def workspace_timers(store: PostgresWorkspaces, nodes: PostgresNodes) -> WorkspaceTimers:
    return WorkspaceTimers(WORKER, store, nodes, SystemClock(), jitter=lambda: 0.5)
