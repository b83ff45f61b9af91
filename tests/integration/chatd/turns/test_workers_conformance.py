"""What every store of leases and claims promises, asked of PostgreSQL and of the fake."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

import pytest

from chatd.chats.domain.chat import (
    ChatState,
    Claimed,
    PendingCall,
    Revert,
    RevertKind,
    Status,
)
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    OwnerId,
    RevertId,
    WorkerId,
)
from chatd.turns.store.workers import PostgresWorkers
from chatd.workers.domain import (
    CRASH_LOOP,
    PARKING_TAKEOVERS,
    Claims,
    DueAction,
    Leases,
    NamedChat,
    Replica,
    SweepLimits,
    UserLoad,
    WorkerEnded,
)
from parley.clock import FakeClock, SystemClock
from parley.postgres import Pool, Session
from support.chatd.chats.chat_rows import insert_chat
from support.chatd.chats.in_memory_chats import InMemoryChats
from support.chatd.turns.in_memory_workers import InMemoryWorkers
from support.database.conflicts import RETRIES

ACTION = ExecutionId("00000000-0000-0000-0000-0000000000ac")
ME = WorkerId("00000000-0000-0000-0000-0000000000aa")
OTHER = WorkerId("00000000-0000-0000-0000-0000000000bb")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
BOB = Owner(OwnerId("00000000-0000-0000-0000-00000000000b"), "admin")
UNKNOWN = WorkerId("00000000-0000-0000-0000-0000000000cc")
LEASE_S = 15.0
PLENTY = SweepLimits(10, 10)
SUSPECTS = SweepLimits(10, 10, is_quarantine=True)


class Workers(Leases, Claims, Protocol):
    """Everything a store of workers can be asked."""

    async def replicas(self) -> tuple[Replica, ...]: ...

    async def place_in_line(self, chat_id: ChatId) -> int | None: ...


@dataclass(frozen=True)
class World:
    """A store, and ways to bring about what only time does."""

    workers: Workers
    insert: Callable[[ChatState, Owner, float], Awaitable[None]]
    end_lease: Callable[[WorkerId], Awaitable[object]]
    _numbers: "itertools.count[int]"

    async def chat(
        self,
        *,
        status: Status = Status.RUNNING,
        worker_id: WorkerId | None = None,
        takeovers: int = 0,
        owner: Owner = ANN,
        age_s: float = 0.0,
        revert: Revert | None = None,
    ) -> ChatState:
        """Store a chat that is in the middle of a turn."""
        chat_id = ChatId(f"00000000-0000-0000-0000-{next(self._numbers):012}")
        state = ChatState(
            chat_id,
            status,
            snapshot_version=5,
            history_version=4,
            generation_attempt=2,
            next_message_id=MessageId(3),
            owner_epoch=7,
            worker_id=worker_id,
            takeovers=takeovers,
            revert=revert,
        )
        await self.insert(state, owner, age_s)
        return state


@pytest.fixture(params=["memory", "postgres"])
async def world(
    request: pytest.FixtureRequest, pool: Pool, chat_database: str
) -> AsyncIterator[World]:
    if request.param == "memory":
        yield in_memory()
        return

    async def insert(state: ChatState, owner: Owner, age_s: float) -> None:
        await insert_chat(pool, state, owner, age_s=age_s)

    async def end_lease(worker_id: WorkerId) -> None:
        over = "UPDATE chat.workers SET lease_until = clock_timestamp() WHERE id = $1"
        await pool.execute(over, worker_id)

    workers = PostgresWorkers(pool, Session(chat_database, "test lease"), RETRIES)
    try:
        yield World(workers, insert, end_lease, itertools.count(1))
    finally:
        workers.close()


def in_memory() -> World:
    clock = FakeClock(start=SystemClock().now())
    workers = InMemoryWorkers(InMemoryChats(), clock)

    async def insert(state: ChatState, owner: Owner, age_s: float) -> None:
        workers.add(state, owner, clock.now() - timedelta(seconds=age_s))

    async def end_lease(worker_id: WorkerId) -> None:
        workers.rows[worker_id] = replace(workers.rows[worker_id], lease_until=clock.now())

    return World(workers, insert, end_lease, itertools.count(1))


@pytest.fixture
async def workers(world: World) -> Workers:
    """The store, with both workers alive."""
    await world.workers.register(ME, "unix:/me", LEASE_S)
    await world.workers.register(OTHER, "unix:/other", LEASE_S)
    return world.workers


def claimed(state: ChatState, *, by: WorkerId = ME) -> ChatState:
    """Return what a claim makes of a running chat."""
    return replace(
        state,
        worker_id=by,
        owner_epoch=state.owner_epoch + 1,
        snapshot_version=state.snapshot_version + 1,
        generation_attempt=state.generation_attempt + 1,
    )


async def test_a_renewal_names_the_chats_of_the_worker(world: World, workers: Workers) -> None:
    mine = await world.chat(worker_id=ME)
    stopping = await world.chat(worker_id=ME, status=Status.INTERRUPTING)
    await world.chat(worker_id=OTHER)
    await world.chat()
    assert await workers.renew(ME, LEASE_S) == (
        NamedChat(mine.chat_id, 7, 5, Status.RUNNING),
        NamedChat(stopping.chat_id, 7, 5, Status.INTERRUPTING),
    )


async def test_a_worker_that_owns_nothing_is_told_so(workers: Workers) -> None:
    assert await workers.renew(ME, LEASE_S) == ()


async def test_a_worker_without_a_row_is_told_that_it_is_gone(world: World) -> None:
    assert await world.workers.renew(ME, LEASE_S) is None


async def test_a_renewal_brings_a_lease_back_that_had_run_out(
    world: World, workers: Workers
) -> None:
    await world.end_lease(ME)
    await workers.renew(ME, LEASE_S)
    assert await workers.replicas() == (
        Replica(ME, "unix:/me", False),
        Replica(OTHER, "unix:/other", False),
    )


async def test_only_the_living_are_replicas_and_the_draining_say_so(
    world: World, workers: Workers
) -> None:
    await workers.begin_drain(ME)
    await world.end_lease(OTHER)
    assert await workers.replicas() == (Replica(ME, "unix:/me", True),)


async def test_a_sweep_claims_a_chat_that_nobody_owns(world: World, workers: Workers) -> None:
    state = await world.chat(owner=BOB)
    taken = await workers.sweep(ME, PLENTY)
    assert taken == (Claimed(claimed(state), BOB),)
    assert await workers.states((state.chat_id,)) == (claimed(state),)


async def test_taking_an_interrupting_chat_opens_no_attempt(world: World, workers: Workers) -> None:
    state = await world.chat(status=Status.INTERRUPTING)
    taken = await workers.sweep(ME, PLENTY)
    assert taken == (Claimed(replace(claimed(state), generation_attempt=2), ANN),)


async def test_a_live_owner_keeps_its_chat(world: World, workers: Workers) -> None:
    await world.chat(worker_id=OTHER)
    assert await workers.sweep(ME, PLENTY) == ()


async def test_chats_of_a_dead_owner_are_taken_and_counted(world: World, workers: Workers) -> None:
    state = await world.chat(worker_id=OTHER)
    await world.end_lease(OTHER)
    assert await workers.sweep(ME, PLENTY) == (Claimed(replace(claimed(state), takeovers=1), ANN),)


def released(state: ChatState) -> ChatState:
    """Return what the end of its owner makes of a chat."""
    return replace(
        state,
        worker_id=None,
        owner_epoch=state.owner_epoch + 1,
        snapshot_version=state.snapshot_version + 1,
        takeovers=state.takeovers + 1,
    )


async def test_chats_of_an_owner_without_a_row_are_taken_and_counted(world: World) -> None:
    await world.workers.register(ME, "unix:/me", LEASE_S)
    state = await world.chat(worker_id=OTHER)
    taken = await world.workers.sweep(ME, PLENTY)
    assert taken == (Claimed(replace(claimed(state), takeovers=1), ANN),)


async def test_the_end_of_a_worker_releases_its_chats_under_a_new_epoch(
    world: World, workers: Workers
) -> None:
    running = await world.chat(worker_id=OTHER)
    stopping = await world.chat(worker_id=OTHER, status=Status.INTERRUPTING)
    mine = await world.chat(worker_id=ME)
    left = (released(running), released(stopping))
    assert await workers.end(OTHER) == left
    assert await workers.states((running.chat_id, stopping.chat_id)) == left
    assert await workers.states((mine.chat_id,)) == (mine,)
    assert await workers.end(OTHER) == ()
    assert await workers.end(UNKNOWN) == ()


async def test_chats_of_an_ended_worker_are_claimed_without_waiting_for_contact(
    world: World, workers: Workers
) -> None:
    before = await world.chat(worker_id=OTHER, age_s=20)
    await workers.end(OTHER)
    # A claim whose commit came after the end, as one that was under way when its process died.
    late = await world.chat(worker_id=OTHER, age_s=0)
    taken = await workers.sweep(ME, replace(PLENTY, may_take_orphans=False))
    assert {each.state.chat_id: each.state for each in taken} == {
        before.chat_id: claimed(released(before)),
        late.chat_id: replace(claimed(late), takeovers=1),
    }


async def test_an_ended_worker_can_neither_renew_nor_register(workers: Workers) -> None:
    await workers.end(ME)
    assert await workers.renew(ME, LEASE_S) is None
    with pytest.raises(WorkerEnded):
        await workers.register(ME, "unix:/me", LEASE_S)
    assert await workers.replicas() == (Replica(OTHER, "unix:/other", False),)


async def test_the_last_death_of_a_crash_loop_parks_the_chat_with_the_end_of_its_owner(
    world: World, workers: Workers
) -> None:
    doomed = await world.chat(worker_id=OTHER, takeovers=PARKING_TAKEOVERS - 1)
    (parked,) = await workers.end(OTHER)
    assert (parked.status, parked.last_error) == (Status.ERROR, CRASH_LOOP)
    assert (parked.owner_epoch, parked.takeovers, parked.worker_id) == (8, 0, None)
    assert await workers.states((doomed.chat_id,)) == (parked,)


async def test_what_is_at_rest_is_not_swept(world: World, workers: Workers) -> None:
    await world.chat(status=Status.WAITING)
    assert await workers.sweep(ME, PLENTY) == ()


async def test_interrupting_chats_come_first_and_then_the_oldest_change(
    world: World, workers: Workers
) -> None:
    newer = await world.chat(age_s=10)
    older = await world.chat(age_s=20)
    stopping = await world.chat(age_s=5, status=Status.INTERRUPTING)
    limits = replace(PLENTY, chats_max=2)
    first = await workers.sweep(ME, limits)
    assert [each.state.chat_id for each in first] == [stopping.chat_id, older.chat_id]
    second = await workers.sweep(ME, limits)
    assert [each.state.chat_id for each in second] == [newer.chat_id]


async def test_a_user_at_the_limit_waits_while_others_go_on(world: World, workers: Workers) -> None:
    await world.chat(worker_id=OTHER)
    first = await world.chat(age_s=40)
    await world.chat(age_s=30)
    others = await world.chat(age_s=20, owner=BOB)
    stopping = await world.chat(age_s=10, status=Status.INTERRUPTING)
    limits = replace(PLENTY, running_per_user_max=2)
    taken = await workers.sweep(ME, limits)
    assert [each.state.chat_id for each in taken] == [
        stopping.chat_id,
        first.chat_id,
        others.chat_id,
    ]
    assert await workers.sweep(ME, limits) == ()


async def test_users_at_the_limit_are_found_over_all_live_processes(
    world: World, workers: Workers
) -> None:
    assert await workers.user_load(2) == UserLoad(2, frozenset())
    await world.chat(worker_id=OTHER)
    await world.chat(worker_id=ME)
    await world.chat(worker_id=ME, owner=BOB)
    await world.chat(owner=BOB)
    assert await workers.user_load(2) == UserLoad(2, frozenset({ANN.id}))
    await world.end_lease(OTHER)
    assert await workers.user_load(2) == UserLoad(1, frozenset())


async def test_suspects_are_taken_only_in_quarantine_and_nothing_else_is(
    world: World, workers: Workers
) -> None:
    orphan = await world.chat(worker_id=OTHER, takeovers=1, age_s=30)
    free = await world.chat(takeovers=2, age_s=20)
    harmless = await world.chat(takeovers=1, age_s=10)
    await world.end_lease(OTHER)
    one = await workers.sweep(ME, replace(SUSPECTS, chats_max=1))
    assert one == (Claimed(replace(claimed(orphan), takeovers=2), ANN),)
    assert await workers.sweep(ME, PLENTY) == (Claimed(claimed(harmless), ANN),)
    assert await workers.sweep(ME, SUSPECTS) == (Claimed(claimed(free), ANN),)


async def test_suspects_with_fewer_deaths_come_first(world: World, workers: Workers) -> None:
    worse = await world.chat(takeovers=3, age_s=30)
    newer = await world.chat(takeovers=2, age_s=10)
    older = await world.chat(takeovers=2, age_s=20)
    taken = await workers.sweep(ME, SUSPECTS)
    assert [each.state.chat_id for each in taken] == [older.chat_id, newer.chat_id, worse.chat_id]


async def test_a_quarantine_is_needed_while_a_suspect_waits_and_nobody_takes_it(
    world: World, workers: Workers
) -> None:
    await world.chat(takeovers=1)
    await world.chat(worker_id=ME, takeovers=2)
    assert not await workers.needs_quarantine()
    await world.chat(worker_id=OTHER, takeovers=1)
    assert not await workers.needs_quarantine()
    await workers.end(OTHER)
    assert await workers.needs_quarantine()
    await workers.register(UNKNOWN, "unix:/quarantine", LEASE_S, is_quarantine=True)
    assert not await workers.needs_quarantine()
    assert set(await workers.replicas()) == {
        Replica(ME, "unix:/me", False),
        Replica(UNKNOWN, "unix:/quarantine", False, is_quarantine=True),
    }
    await workers.end(UNKNOWN)
    assert await workers.needs_quarantine()


async def test_orphans_are_taken_only_if_asked(world: World, workers: Workers) -> None:
    orphan = await world.chat(worker_id=OTHER, age_s=20)
    free = await world.chat(age_s=10)
    await world.end_lease(OTHER)
    unasked = await workers.sweep(ME, replace(PLENTY, may_take_orphans=False))
    assert unasked == (Claimed(claimed(free), ANN),)
    asked = await workers.sweep(ME, PLENTY)
    assert asked == (Claimed(replace(claimed(orphan), takeovers=1), ANN),)


@pytest.mark.parametrize("handicap", ["draining", "dead", "nearly dead", "unknown"])
async def test_a_worker_without_a_good_lease_claims_nothing(
    world: World, workers: Workers, handicap: str
) -> None:
    await world.chat()
    mine = await world.chat(worker_id=ME)
    await world.chat(worker_id=OTHER, takeovers=3)
    await world.end_lease(OTHER)
    match handicap:
        case "draining":
            await workers.begin_drain(ME)
        case "dead":
            await world.end_lease(ME)
        case "nearly dead":
            await workers.renew(ME, 2.5)
        case "unknown":
            await workers.end(ME)
    assert await workers.sweep(ME, PLENTY) == ()
    assert await workers.park(ME, 10) == ()
    assert await workers.reclaim(ME, mine.chat_id, mine.owner_epoch) is None


@pytest.mark.parametrize("status", [Status.RUNNING, Status.INTERRUPTING])
async def test_a_chat_whose_owners_keep_dying_is_parked(
    world: World, workers: Workers, status: Status
) -> None:
    doomed = await world.chat(worker_id=OTHER, takeovers=3, status=status)
    await world.chat(worker_id=ME, takeovers=3)
    await world.end_lease(OTHER)
    assert await workers.sweep(ME, SUSPECTS) == ()
    parked = replace(
        doomed,
        status=Status.ERROR,
        last_error=CRASH_LOOP,
        worker_id=None,
        owner_epoch=8,
        snapshot_version=6,
        generation_attempt=0,
        takeovers=0,
    )
    assert await workers.park(ME, 10) == (parked,)
    assert await workers.states((doomed.chat_id,)) == (parked,)
    assert await workers.park(ME, 10) == ()


async def test_a_parked_chat_does_not_revert_any_more(world: World, workers: Workers) -> None:
    revert = Revert(
        RevertId("00000000-0000-0000-0000-0000000000f1"), RevertKind.HISTORY, MessageId(1), True
    )
    doomed = await world.chat(
        worker_id=OTHER,
        takeovers=PARKING_TAKEOVERS - 1,
        status=Status.RUNNING,
        revert=revert,
    )
    await world.end_lease(OTHER)

    (parked,) = await workers.park(ME, 10)

    assert (parked.chat_id, parked.status, parked.revert) == (doomed.chat_id, Status.ERROR, None)


async def test_a_released_suspect_is_not_parked(world: World, workers: Workers) -> None:
    await world.chat(takeovers=3)
    assert await workers.park(ME, 10) == ()


async def test_a_worker_claims_its_own_chat_anew(world: World, workers: Workers) -> None:
    state = await world.chat(worker_id=ME, takeovers=1)
    assert await workers.reclaim(ME, state.chat_id, 7) == Claimed(claimed(state), ANN)
    assert await workers.reclaim(ME, state.chat_id, 7) is None


async def test_a_worker_does_not_claim_anew_what_is_not_its_own(
    world: World, workers: Workers
) -> None:
    state = await world.chat(worker_id=OTHER)
    assert await workers.reclaim(ME, state.chat_id, state.owner_epoch) is None


async def test_actions_are_due_when_their_time_is_over(world: World, workers: Workers) -> None:
    asking = ChatState(
        ChatId("00000000-0000-0000-0000-0000000000f1"),
        Status.REQUIRES_ACTION,
        snapshot_version=5,
        history_version=4,
        generation_attempt=0,
        next_message_id=MessageId(3),
        pending=(PendingCall("call_0", "ask", ACTION, kind=PendingKind.CLIENT, deadline_s=300.0),),
    )
    now = SystemClock().now()
    others = ChatId("00000000-0000-0000-0000-0000000000f2")
    early = ChatId("00000000-0000-0000-0000-0000000000f3")
    await world.insert(replace(asking, deadline_at=now - timedelta(seconds=10)), ANN, 0)
    late = replace(asking, chat_id=others, deadline_at=now - timedelta(seconds=20))
    await world.insert(late, BOB, 0)
    later = replace(asking, chat_id=early, deadline_at=now + timedelta(seconds=60))
    await world.insert(later, ANN, 0)
    due = (DueAction(others, BOB, ACTION), DueAction(asking.chat_id, ANN, ACTION))
    assert await workers.due_actions(10) == due
    assert await workers.due_actions(1) == due[:1]
    assert await workers.sweep(ME, PLENTY) == ()


async def test_what_a_worker_owns_can_be_listed(world: World, workers: Workers) -> None:
    mine = await world.chat(worker_id=ME)
    await world.chat(worker_id=OTHER)
    await world.chat()
    assert await workers.owned(ME) == (mine,)


async def test_places_in_line_follow_the_order_of_a_sweep(world: World, workers: Workers) -> None:
    newer = await world.chat(age_s=10)
    older = await world.chat(age_s=20)
    stopping = await world.chat(age_s=5, status=Status.INTERRUPTING)
    owned = await world.chat(age_s=30, worker_id=ME)
    chats = (stopping, older, newer, owned)
    assert [await workers.place_in_line(chat.chat_id) for chat in chats] == [1, 2, 3, None]
