"""Workspaces, nodes and templates in PostgreSQL: guards, claims, quotas under races, lookups."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from datetime import timedelta

import pytest

from chatd.chats.domain.chat import ChatState, Status
from chatd.primitives.domain.errors import NameTaken, RequestIdReused, WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.workspaces.domain.commands import (
    ConfirmPolicy,
    Fail,
    FinishPreparing,
    FinishStopping,
    Place,
    Remove,
    Report,
    SetPolicy,
    Start,
    Stop,
    Use,
)
from chatd.workspaces.domain.errors import QuotaExhausted, TooManyNewWorkspaces
from chatd.workspaces.domain.ports import LogLine
from chatd.workspaces.domain.quota import Dimension, QuotaLimits, QuotaUse
from chatd.workspaces.domain.spec import Limits, Source
from chatd.workspaces.domain.templates import SCRATCH_ID
from chatd.workspaces.domain.workspace import (
    Failure,
    FailureKind,
    State,
    StopReason,
    Usage,
    Workspace,
    WorkspaceId,
)
from chatd.workspaces.engine.timers import WorkspaceTimers
from chatd.workspaces.store.nodes import PostgresNodes
from chatd.workspaces.store.reads import JUST_DELETED, SELECT_JUST_ORPHANED, WorkspacePlace
from chatd.workspaces.store.workspaces import LOCK_OWNER, PostgresWorkspaces
from parley.clock import SystemClock
from parley.postgres import Pool
from support.chatd.chats.chat_rows import insert_chat as insert_state
from support.chatd.workspaces.stored_workspaces import DRIVER, HASH, IDS, LIMITS, OTHER, fresh
from support.chatd.workspaces.workspace_values import ANN, NODE, NOON, node, workspace

OTHER_OWNER = OwnerId("00000000-0000-4000-8000-00000000e0e0")
UNBOUNDED = QuotaLimits(live_workspaces=0, workspaces=0, created_per_minute=0)


async def insert_chat(pool: Pool, *, owner_id: OwnerId) -> str:
    chat_id = ChatId(next(IDS))
    await insert_state(
        pool, ChatState(chat_id, Status.WAITING, 1, 1, 0, MessageId(1)), Owner(owner_id, "member")
    )
    return chat_id


@pytest.fixture
def store(pool: Pool) -> PostgresWorkspaces:
    return PostgresWorkspaces(pool)


@pytest.fixture
def nodes(pool: Pool) -> PostgresNodes:
    return PostgresNodes(pool)


async def test_what_is_stored_is_what_was_decided(store: PostgresWorkspaces) -> None:
    made = fresh(
        parameters={"a": "b"},
        spec=replace(workspace().spec, source=Source(url="https://example.org/x.git")),
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
        ConfirmPolicy(1, 1),
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


async def test_workspaces_created_within_a_minute_are_bounded_for_each_user(
    store: PostgresWorkspaces, pool: Pool
) -> None:
    """Also those that are deleted at once; others, and repeated requests, are not affected."""
    limits = QuotaLimits(live_workspaces=0, created_per_minute=10)

    async def add(name: str, limits: QuotaLimits, owner_id: OwnerId = ANN) -> Workspace:
        now = await store.now()
        made = fresh(name, owner_id=owner_id, created_at=now, last_used_at=now)
        added, is_new = await store.add(made, HASH, limits)
        assert is_new
        return added

    added = [await add(f"w-{number}", limits) for number in range(10)]
    for number, each in enumerate(added):
        await store.apply(each.id, Remove())
        scratch = WorkspaceId(next(IDS))
        named = replace(each, id=scratch, name=f"s-{number}", is_scratch_of_chat=True)
        await store.add_scratch(named, DRIVER, 1.0)
    with pytest.raises(TooManyNewWorkspaces) as refused:
        await add("more", limits)
    assert refused.value.created_max == 10
    assert 0 < refused.value.retry_after_s <= 60
    assert not (await store.add(added[-1], HASH, limits))[1]
    await add("other", limits, OTHER_OWNER)
    await add("unbounded", UNBOUNDED)
    await pool.execute("UPDATE chat.workspaces SET created_at = created_at - interval '1 minute'")
    await add("later", limits)


async def test_a_create_waits_for_one_that_counts(store: PostgresWorkspaces, pool: Pool) -> None:
    await store.add(fresh("first"), HASH, LIMITS)
    async with asyncio.timeout(20), pool.acquire() as connection, asyncio.TaskGroup() as tasks:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(LOCK_OWNER, ANN)
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


async def test_a_start_and_a_create_that_count_at_once_make_one(
    store: PostgresWorkspaces, pool: Pool
) -> None:
    stopped = fresh("stopped")
    await store.add(stopped, HASH, LIMITS)
    await store.apply(stopped.id, Stop(StopReason.REQUESTED))
    await store.add(fresh("live"), HASH, LIMITS)

    async def is_done(change: Awaitable[object]) -> bool:
        try:
            await change
        except QuotaExhausted as refused:
            uses.append(refused.use)
            return False
        return True

    uses: list[QuotaUse] = []
    async with asyncio.timeout(20), pool.acquire() as connection, asyncio.TaskGroup() as tasks:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(LOCK_OWNER, ANN)
        changes = (
            store.start(stopped.id, Start(), LIMITS),
            store.add(fresh("created"), HASH, LIMITS),
        )
        done = [tasks.create_task(is_done(change)) for change in changes]
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while await pool.fetchval(waiting) < len(changes):
            assert not any(each.done() for each in done)
        await transaction.rollback()
    assert sorted(each.result() for each in done) == [False, True]
    assert uses == [QuotaUse(Dimension.LIVE_WORKSPACES, 2, 2)]


async def test_one_that_was_stopped_takes_no_live_place_while_it_is_removed(
    store: PostgresWorkspaces,
) -> None:
    gone, stopped = fresh("gone"), fresh("stopped")
    for each in (gone, stopped):
        await store.add(each, HASH, LIMITS)
        for command in (Place(NODE), FinishPreparing(1), Stop(StopReason.REQUESTED)):
            await store.apply(each.id, command)
        await store.apply(each.id, FinishStopping(1))
    await store.add(fresh("live"), HASH, LIMITS)
    _, removing = await store.apply(gone.id, Remove())
    assert (removing.state, removing.is_removing) == (State.STOPPING, True)
    _, started = await store.start(stopped.id, Start(), LIMITS)
    assert started.state is State.PREPARING


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
    workspace_timers = WorkspaceTimers(DRIVER, store, nodes, SystemClock(), jitter=lambda: 0.5)
    made = fresh()
    await store.add(made, HASH, LIMITS)
    await store.apply(made.id, Place(NODE))
    await store.apply(made.id, FinishPreparing(1))
    assert await store.due(10) == ()
    shift = "UPDATE chat.workspaces SET deadline_at = now() + $2::interval WHERE id = $1"
    await pool.execute(shift, made.id, timedelta(minutes=4))
    await workspace_timers.apply_deadlines()
    warned = await store.get(made.id)
    assert (warned.state, warned.warned_for) == (State.READY, warned.deadline_at)
    assert await store.due(10) == ()
    await pool.execute(shift, made.id, timedelta(0))
    await workspace_timers.apply_deadlines()
    assert (await store.get(made.id)).stop_reason is StopReason.AUTOSTOP
    await store.apply(made.id, FinishStopping(1))
    await pool.execute("UPDATE chat.workspaces SET delete_at = now() WHERE id = $1", made.id)
    await workspace_timers.apply_deadlines()
    assert (await store.get(made.id)).is_removing


async def test_the_chats_of_a_worker_keep_their_workspaces_in_use(
    store: PostgresWorkspaces, pool: Pool
) -> None:
    chat_id = await insert_chat(pool, owner_id=ANN)
    await store.add_scratch(fresh(id=WorkspaceId(chat_id)), DRIVER, 15.0)
    await store.apply(chat_id, Place(NODE))
    await store.apply(chat_id, FinishPreparing(1))
    assert await store.used_by_worker(DRIVER) == ()
    await pool.execute("INSERT INTO chat.workers VALUES ($1, 'x', false, now(), now())", DRIVER)
    await pool.execute(
        "UPDATE chat.chat_exec SET status = 'running', worker_id = $2 WHERE chat_id = $1",
        chat_id,
        DRIVER,
    )
    assert [each.workspace.id for each in await store.used_by_worker(DRIVER)] == [chat_id]
    assert await store.used_by_worker(OTHER) == ()


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
    assert await store.choose(chat_id, bound.id, bound.owner_id)
    found = await store.of_chat(chat_id)
    assert found is not None
    assert (found.workspace, found.is_bound) == (placed, True)
    assert (found.node_address, found.is_node_lost) == ("unix:/run/node.sock", False)

    foreign = fresh("foreign", owner_id=OwnerId(next(IDS)))
    await store.add(foreign, HASH, LIMITS)
    assert not await store.choose(chat_id, foreign.id, bound.owner_id)
    await pool.execute("UPDATE chat.chats SET workspace_id = $2 WHERE id = $1", chat_id, foreign.id)
    found = await store.of_chat(chat_id)
    assert found is not None
    # What names nothing of the owner's any more is as if nothing was chosen.
    assert (found.workspace, found.is_bound) == (scratch, False)


async def test_what_a_deleted_chat_leaves_behind_is_removed(
    store: PostgresWorkspaces, nodes: PostgresNodes, pool: Pool
) -> None:
    chat_id = await insert_chat(pool, owner_id=ANN)
    scratch = fresh(id=WorkspaceId(chat_id), is_scratch_of_chat=True)
    await store.add_scratch(scratch, DRIVER, 15.0)
    workspace_timers = WorkspaceTimers(DRIVER, store, nodes, SystemClock(), jitter=lambda: 0.5)
    await workspace_timers.remove_orphans()
    assert (await store.get(chat_id)).state is State.PENDING
    await pool.execute(
        "INSERT INTO chat.deleted_chats VALUES ($1, $2, pg_current_xact_id(), now())", chat_id, ANN
    )
    await workspace_timers.remove_orphans()
    assert (await store.get(chat_id)).state is State.DELETED
    # A call that began before the deletion does not create it again, with its row or without.
    with pytest.raises(WorkspaceNotFound):
        await store.restart_scratch(chat_id)
    assert (await store.add_scratch(scratch, DRIVER, 15.0)).state is State.DELETED
    await pool.execute("DELETE FROM chat.workspaces WHERE id = $1", chat_id)
    with pytest.raises(WorkspaceNotFound):
        await store.add_scratch(scratch, DRIVER, 15.0)


async def test_what_another_chat_is_bound_to_outlives_the_chat_that_it_was_made_for(
    store: PostgresWorkspaces, nodes: PostgresNodes, pool: Pool
) -> None:
    chat_id, other = await insert_chat(pool, owner_id=ANN), await insert_chat(pool, owner_id=ANN)
    scratch = fresh(id=WorkspaceId(chat_id), is_scratch_of_chat=True)
    await store.add_scratch(scratch, DRIVER, 15.0)
    assert await store.choose(ChatId(other), scratch.id, scratch.owner_id)
    await pool.execute(
        "INSERT INTO chat.deleted_chats VALUES ($1, $2, pg_current_xact_id(), now())", chat_id, ANN
    )
    workspace_timers = WorkspaceTimers(DRIVER, store, nodes, SystemClock(), jitter=lambda: 0.5)
    await workspace_timers.remove_orphans()
    assert (await store.get(chat_id)).state is State.PENDING
    await pool.execute("UPDATE chat.chats SET workspace_id = NULL WHERE id = $1", other)
    # The chat was deleted long before the other one let go of its workspace.
    await pool.execute("UPDATE chat.deleted_chats SET deleted_at = deleted_at - interval '1 day'")
    await workspace_timers.remove_orphans()
    assert (await store.get(chat_id)).state is State.PENDING
    workspace_timers = WorkspaceTimers(DRIVER, store, nodes, SystemClock(), jitter=lambda: 0.5)
    await workspace_timers.remove_orphans()
    assert (await store.get(chat_id)).state is State.DELETED


async def test_the_frequent_search_for_deleted_chats_reads_no_other_workspaces(pool: Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        # Tables as small as those of tests are read whole otherwise.
        await connection.execute("SET LOCAL enable_seqscan = off")
        rows = await connection.fetch(f"EXPLAIN {SELECT_JUST_ORPHANED}", 100, JUST_DELETED)
    plan = "\n".join(row[0] for row in rows)
    assert "Index Scan using workspaces_pkey" in plan
    assert "Index Cond: (id = gone.chat_id)" in plan


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
