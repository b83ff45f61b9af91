"""Workspaces, nodes and templates in PostgreSQL: guards, claims, quotas under races, lookups."""

import asyncio
import itertools
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chatd.clients.in_memory_host import InMemoryHost
from chatd.domain.chat import (
    ChatId,
    ChatState,
    MessageId,
    Owner,
    OwnerId,
    Status,
    WorkerId,
)
from chatd.domain.errors import NameTaken, RequestIdReused, VersionConflict, WorkspaceNotFound
from chatd.domain.workspaces.commands import (
    Fail,
    FinishPreparing,
    FinishStopping,
    Place,
    Remove,
    Report,
    SetPolicy,
    Start,
    Stop,
    TellPolicy,
    Use,
)
from chatd.domain.workspaces.errors import NoNode, QuotaExhausted, StaleNode, TemplateNotFound
from chatd.domain.workspaces.nodes import Capacity, Directory, Load, Need, NodeState, choose
from chatd.domain.workspaces.ports import LogLine
from chatd.domain.workspaces.quota import Dimension, QuotaLimits, QuotaUse
from chatd.domain.workspaces.ranking import Habit
from chatd.domain.workspaces.recipe import Kind, Limits, Source
from chatd.domain.workspaces.templates import SCRATCH_ID, Parameter, Preset
from chatd.domain.workspaces.workspace import (
    NODE_LOST,
    Failure,
    FailureKind,
    State,
    StopReason,
    Usage,
    Workspace,
    WorkspaceId,
)
from chatd.engine.workspaces.driver import Driver
from chatd.engine.workspaces.keeper import Keeper
from chatd.engine.workspaces.node_list import NodeList, static_node
from chatd.engine.workspaces.registry import Registry
from chatd.store.nodes import NodePlace, PostgresNodes
from chatd.store.templates import PostgresTemplates
from chatd.store.workspace_reads import WorkspacePlace
from chatd.store.workspaces import PostgresWorkspaces
from parley.clock import SystemClock
from parley.postgres import Pool
from support.chat_rows import insert_chat as insert_state
from support.workspace_values import ANN, NODE, NOON, node, template, workspace

LIMITS = QuotaLimits(live_workspaces=2, workspaces=3)
HASH = b"one"
IDS = (str(uuid.UUID(int=0x4000 << 64 | number)) for number in itertools.count(1))
DRIVER, OTHER = WorkerId(next(IDS)), WorkerId(next(IDS))


async def insert_chat(pool: Pool, *, owner_id: OwnerId) -> str:
    chat_id = ChatId(next(IDS))
    await insert_state(
        pool, ChatState(chat_id, Status.WAITING, 1, 1, 0, MessageId(1)), Owner(owner_id, "member")
    )
    return chat_id


def fresh(name: str = "one", **values: Any) -> Workspace:
    return replace(workspace(), **{"id": WorkspaceId(next(IDS)), "name": name, **values})


@pytest.fixture
def store(pool: Pool) -> PostgresWorkspaces:
    return PostgresWorkspaces(pool)


@pytest.fixture
def nodes(pool: Pool) -> PostgresNodes:
    return PostgresNodes(pool)


async def test_what_is_stored_is_what_was_decided(store: PostgresWorkspaces) -> None:
    made = fresh(
        parameters={"a": "b"},
        recipe=replace(workspace().recipe, source=Source(url="https://example.org/x.git")),
        template_id=SCRATCH_ID,
        template_name="scratch",
    )
    assert await store.add(made, HASH, LIMITS) == (made, True)
    assert await store.add(made, HASH, LIMITS) == (made, False)
    seen = made
    for command in (
        Place(NODE),
        FinishPreparing(1, "/workspace", "agent/x", "ns"),
        Report(1, True, Usage(1, 2, 3, 4, 5, 6)),
        SetPolicy(limits=Limits(pids=7)),
        TellPolicy(1, 1),
        Use(),
        Stop(StopReason.AUTOSTOP),
        FinishStopping(1),
        Start({"a": "c"}),
        Fail(2, Failure(FailureKind.SETUP, "exit code 1")),
        Remove(is_node_lost=True),
    ):
        before, after = await store.apply(made.id, command)
        assert (before, await store.get(made.id)) == (seen, after)
        seen = after
    assert seen.state is State.DELETED
    with pytest.raises(RequestIdReused):
        await store.add(made, b"other", LIMITS)
    with pytest.raises(WorkspaceNotFound):
        await store.own(made.id, OwnerId(next(IDS)))


async def test_two_creates_at_the_limit_make_one(store: PostgresWorkspaces) -> None:
    """Both count before either writes would make two too many; counting is serialised."""
    await store.add(fresh("first"), HASH, LIMITS)

    async def create(name: str) -> bool:
        try:
            return (await store.add(fresh(name), HASH, LIMITS))[1]
        except QuotaExhausted as refused:
            uses.append(refused.use)
            return False

    uses: list[QuotaUse] = []
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(create(f"more-{n}")) for n in range(6)]
    assert sorted(each.result() for each in made) == [False] * 5 + [True]
    assert uses == [QuotaUse(Dimension.LIVE_WORKSPACES, 2, 2)] * 5


async def test_a_create_waits_for_one_that_counts(store: PostgresWorkspaces, pool: Pool) -> None:
    await store.add(fresh("first"), HASH, LIMITS)
    async with asyncio.timeout(20), pool.acquire() as connection, asyncio.TaskGroup() as tasks:
        transaction = connection.transaction()
        await transaction.start()
        lock = "SELECT pg_advisory_xact_lock(hashtextextended('workspaces of ' || $1::text, 0))"
        await connection.execute(lock, ANN)
        creating = tasks.create_task(store.add(fresh("second"), HASH, LIMITS))
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not await pool.fetchval(waiting):
            assert not creating.done()
        await transaction.rollback()
    assert creating.result()[1]


async def test_a_start_counts_like_a_create(store: PostgresWorkspaces) -> None:
    stopped = fresh("stopped")
    await store.add(stopped, HASH, LIMITS)
    await store.apply(stopped.id, Stop(StopReason.REQUESTED))
    for name in ("a", "b"):
        await store.add(fresh(name), HASH, LIMITS)
    with pytest.raises(QuotaExhausted) as refused:
        await store.start(stopped.id, Start(), LIMITS)
    assert refused.value.use.dimension is Dimension.LIVE_WORKSPACES
    _, started = await store.start(stopped.id, Start(), QuotaLimits())
    assert started.state is State.PENDING
    # One that lives is left alone, whatever the limit.
    assert await store.start(stopped.id, Start(), LIMITS) == (started, started)


async def test_a_name_is_an_owners_own_until_it_is_deleted(store: PostgresWorkspaces) -> None:
    first = fresh("same")
    await store.add(first, HASH, QuotaLimits())
    with pytest.raises(NameTaken):
        await store.add(fresh("same"), HASH, QuotaLimits())
    await store.add(fresh("same", owner_id=OwnerId(next(IDS))), HASH, QuotaLimits())
    await store.apply(first.id, Remove(is_node_lost=True))
    await store.add(fresh("same"), HASH, QuotaLimits())


async def test_what_waits_is_claimed_once_and_again_when_the_claim_is_over(
    store: PostgresWorkspaces, pool: Pool
) -> None:
    made = [fresh(f"w{n}") for n in range(4)]
    for each in made:
        await store.add(each, HASH, QuotaLimits())
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        claiming = [tasks.create_task(store.claim(each, 60.0, 2)) for each in (DRIVER, OTHER)]
    first, second = (each.result() for each in claiming)
    ids = {each.id for each in (*first, *second)}
    assert ids == {each.id for each in made}
    assert await store.claim(OTHER, 60.0, 10) == ()
    mine = first[0].id
    assert await store.renew(OTHER, mine, 60.0) is None
    assert await store.claim_one(OTHER, mine, 60.0) is None
    await pool.execute("UPDATE chat.workspaces SET driven_until = now() WHERE id = $1", mine)
    assert [each.id for each in await store.claim(OTHER, 60.0, 10)] == [mine]
    assert await store.renew(DRIVER, mine, 60.0) is None
    await store.release(OTHER, mine, 0.0)
    assert [each.id for each in await store.claim(DRIVER, 60.0, 10)] == [mine]


async def test_a_row_that_somebody_looks_at_is_skipped(
    store: PostgresWorkspaces, pool: Pool
) -> None:
    made = [fresh("a"), fresh("b")]
    for each in made:
        await store.add(each, HASH, QuotaLimits())
    async with asyncio.timeout(20), pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "SELECT 1 FROM chat.workspaces WHERE id = $1 FOR UPDATE", made[0].id
        )
        assert [each.id for each in await store.claim(DRIVER, 60.0, 10)] == [made[1].id]


async def test_time_is_told_by_the_database(
    store: PostgresWorkspaces, nodes: PostgresNodes, pool: Pool
) -> None:
    keeper = Keeper(DRIVER, store, nodes, SystemClock(), chance=lambda: 0.5)
    made = fresh()
    await store.add(made, HASH, LIMITS)
    await store.apply(made.id, Place(NODE))
    await store.apply(made.id, FinishPreparing(1))
    assert await store.due(10) == ()
    shift = "UPDATE chat.workspaces SET deadline_at = now() + $2::interval WHERE id = $1"
    await pool.execute(shift, made.id, timedelta(minutes=4))
    await keeper.keep_time()
    warned = await store.get(made.id)
    assert (warned.state, warned.warned_for) == (State.READY, warned.deadline_at)
    assert await store.due(10) == ()
    await pool.execute(shift, made.id, timedelta(0))
    await keeper.keep_time()
    assert (await store.get(made.id)).stop_reason is StopReason.AUTOSTOP
    await store.apply(made.id, FinishStopping(1))
    await pool.execute("UPDATE chat.workspaces SET delete_at = now() WHERE id = $1", made.id)
    await keeper.keep_time()
    assert (await store.get(made.id)).is_removing


async def test_the_chats_of_a_worker_keep_their_workspaces_in_use(
    store: PostgresWorkspaces, pool: Pool
) -> None:
    chat_id = await insert_chat(pool, owner_id=ANN)
    await store.add_scratch(fresh(id=WorkspaceId(chat_id)), DRIVER, 15.0)
    await store.apply(chat_id, Place(NODE))
    await store.apply(chat_id, FinishPreparing(1))
    assert await store.worked_in(DRIVER) == ()
    await pool.execute("INSERT INTO chat.workers VALUES ($1, 'x', false, now(), now())", DRIVER)
    await pool.execute(
        "UPDATE chat.chat_exec SET status = 'running', worker_id = $2 WHERE chat_id = $1",
        chat_id,
        DRIVER,
    )
    assert [each.workspace.id for each in await store.worked_in(DRIVER)] == [chat_id]
    assert await store.worked_in(OTHER) == ()


async def test_a_chat_works_in_its_scratch_until_it_is_bound_to_a_workspace_of_its_owner(
    store: PostgresWorkspaces, nodes: PostgresNodes, pool: Pool
) -> None:
    chat_id = ChatId(await insert_chat(pool, owner_id=ANN))
    assert await store.of_chat(ChatId(next(IDS))) is None
    found = await store.of_chat(chat_id)
    assert found is not None
    scratch_id = WorkspaceId(chat_id)
    assert (found.workspace, found.scratch_id, found.is_bound) == (None, scratch_id, False)
    scratch = fresh(id=WorkspaceId(chat_id), is_scratch_of_chat=True)
    assert await store.add_scratch(scratch, DRIVER, 15.0) == scratch
    assert await store.add_scratch(replace(scratch, name="again"), DRIVER, 15.0) == scratch
    stranger = replace(scratch, owner_id=OwnerId(next(IDS)))
    with pytest.raises(WorkspaceNotFound):
        await store.add_scratch(stranger, DRIVER, 15.0)
    assert (await store.of_chat(chat_id)).workspace == scratch  # type: ignore[union-attr]

    await nodes.register(node(), "r1")
    bound = fresh("bound")
    await store.add(bound, HASH, LIMITS)
    _, placed = await store.apply(bound.id, Place(NODE))
    assert await store.bind(chat_id, bound.id)
    found = await store.of_chat(chat_id)
    assert found is not None
    assert (found.workspace, found.is_bound) == (placed, True)
    assert (found.node_address, found.is_node_lost) == ("unix:/run/node.sock", False)

    foreign = fresh("foreign", owner_id=OwnerId(next(IDS)))
    await store.add(foreign, HASH, LIMITS)
    assert not await store.bind(chat_id, foreign.id)
    await pool.execute("UPDATE chat.chats SET workspace_id = $2 WHERE id = $1", chat_id, foreign.id)
    found = await store.of_chat(chat_id)
    assert found is not None
    assert found.workspace is None


async def test_what_a_deleted_chat_leaves_behind_is_removed(
    store: PostgresWorkspaces, nodes: PostgresNodes, pool: Pool
) -> None:
    chat_id = await insert_chat(pool, owner_id=ANN)
    scratch = fresh(id=WorkspaceId(chat_id), is_scratch_of_chat=True)
    await store.add_scratch(scratch, DRIVER, 15.0)
    keeper = Keeper(DRIVER, store, nodes, SystemClock(), chance=lambda: 0.5)
    await keeper.keep_order()
    assert (await store.get(chat_id)).state is State.PENDING
    await pool.execute(
        "INSERT INTO chat.deleted_chats VALUES ($1, $2, pg_current_xact_id(), now())", chat_id, ANN
    )
    await keeper.keep_order()
    assert (await store.get(chat_id)).state is State.DELETED


async def test_lists_go_on_where_they_stopped_live_ones_first(store: PostgresWorkspaces) -> None:
    made = [fresh(f"w{n}", last_used_at=NOON + timedelta(hours=n)) for n in range(5)]
    for each in made:
        await store.add(each, HASH, QuotaLimits(live_workspaces=0))
    await store.apply(made[4].id, Stop(StopReason.REQUESTED))
    names: list[str] = []
    after: WorkspacePlace | None = None
    while True:
        page = await store.page(
            owner_id=ANN, states=tuple(State), node_id="", after=after, length=2
        )
        if not page:
            break
        names += [each.name for each in page]
        last = page[-1]
        after = WorkspacePlace(int(last.state is State.PENDING), last.last_used_at, last.id)
    assert names == ["w3", "w2", "w1", "w0", "w4"]


async def test_lines_of_a_preparation_are_kept_once(store: PostgresWorkspaces) -> None:
    made = fresh()
    await store.add(made, HASH, LIMITS)
    lines = [LogLine(n, NOON, "setup", f"line {n}") for n in range(1, 4)]
    await store.log(made.id, 1, lines[:2])
    await store.log(made.id, 1, [replace(lines[0], text="another"), lines[2]])
    assert await store.lines(made.id, 1, 0) == tuple(lines)
    assert await store.lines(made.id, 1, 2) == (lines[2],)
    assert await store.lines(made.id, 2, 0) == ()


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
    keeper = Keeper(DRIVER, store, nodes, SystemClock(), chance=lambda: 0.5)
    await keeper.keep_nodes()
    stopping = await store.get(made.id)
    assert (stopping.state, stopping.stop_reason) == (State.STOPPING, StopReason.DRAIN)
    assert (await nodes.get(NODE)).state is NodeState.DRAINING
    await store.apply(made.id, FinishStopping(1))
    await keeper.keep_nodes()
    assert (await nodes.get(NODE)).state is NodeState.GONE
    assert await nodes.list() == ()


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


async def test_templates_are_kept_changed_and_forgotten(
    pool: Pool, store: PostgresWorkspaces
) -> None:
    templates = PostgresTemplates(pool)
    group = next(IDS)
    made = template(
        kind=Kind.GIT,
        source=Source(url="https://example.org/{repo}.git", depth=1),
        parameters=(Parameter("repo", is_required=True),),
        presets=(Preset(next(IDS), "usual", True, {"repo": "one"}),),
        group_ids=(group,),
    )
    stored = await templates.create(made, HASH)
    assert replace(stored, created_at=None) == made
    assert await templates.create(made, HASH) == stored
    with pytest.raises(NameTaken):
        await templates.create(replace(made, id=next(IDS)), HASH)
    changed = await templates.update(made.id, lambda old: replace(old, description="new"), 1)
    assert (changed.description, changed.version) == ("new", 2)
    with pytest.raises(VersionConflict):
        await templates.update(made.id, lambda old: old, 1)

    assert await templates.get(made.id, frozenset({group})) == changed
    with pytest.raises(TemplateNotFound):
        await templates.get(made.id, frozenset())
    entries, now = await templates.list(ANN, frozenset())
    assert ([each.name for each, _ in entries], now is not None) == (["scratch"], True)
    now = SystemClock().now()
    for owner_id in (ANN, OwnerId(next(IDS))):
        used = fresh(template_id=SCRATCH_ID, owner_id=owner_id, last_used_at=now)
        await store.add(used, HASH, LIMITS)
    entries, _ = await templates.list(ANN, frozenset({group}))
    habits = {each.name: habit for each, habit in entries}
    assert habits == {"plain": Habit(), "scratch": Habit(1, 0, now, 2)}
    await templates.delete(made.id)
    with pytest.raises(TemplateNotFound):
        await templates.get(made.id, frozenset({group}))
