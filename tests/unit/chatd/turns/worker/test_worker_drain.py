import asyncio
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import Claimed, Status
from chatd.chats.domain.commands import Interrupt
from support.chatd.turns.worker_stage import ANN, ONE, TWO, A, B, Stage, settle

CONTACT_S = 9.0


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_drained_worker_releases_its_chats_and_its_lease(stage: Stage) -> None:
    async with stage.worker() as worker:
        running = stage.run_here(worker, A)
        stage.run_here(worker, B)
        stopping = await stage.apply(B, Interrupt(running.turn_id, None))
        await settle()
        await worker.drain()
        assert sorted(stage.runners.ended) == [A, B]
        assert stage.state(A) == replace(running, worker_id=None, snapshot_version=6)
        assert stage.state(B) == replace(stopping, worker_id=None, snapshot_version=7)
        assert stage.state(B).status is Status.INTERRUPTING
        assert stage.workers.rows[ONE].has_ended
        assert stage.offers == 1
        assert not worker.may_act()


async def test_another_worker_takes_over_without_waiting(stage: Stage) -> None:
    async with stage.worker(TWO), stage.worker(ONE) as leaving:
        stage.run_here(leaving, A)
        await stage.pass_time(CONTACT_S)
        await leaving.drain()
        await settle()
        taken = stage.state(A)
        assert (taken.worker_id, taken.owner_epoch, taken.takeovers) == (TWO, 8, 0)
        assert len(stage.runners.started) == 2


async def test_run_returns_once_the_worker_is_drained_however_often_it_is_asked(
    stage: Stage,
) -> None:
    async with stage.worker() as worker:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(worker.drain())
        await settle()
        assert stage.left == [ONE]
        assert stage.offers == 1


async def test_a_draining_worker_gives_no_slots_and_sweeps_nothing(stage: Stage) -> None:
    async with stage.worker() as worker, asyncio.TaskGroup() as group:
        await stage.pass_time(CONTACT_S)
        slot = worker.reserve()
        assert slot is not None
        draining = group.create_task(worker.drain())
        await settle()
        stage.add(A)
        worker.poke()
        await stage.pass_time(3)
        assert worker.reserve() is None
        assert stage.runners.started == []
        worker.release_slot(slot)
        await draining


async def test_a_drain_waits_for_claims_that_are_under_way(stage: Stage) -> None:
    async with stage.worker() as worker, asyncio.TaskGroup() as group:
        slot = worker.reserve()
        assert slot is not None
        draining = group.create_task(worker.drain())
        await settle()
        assert not draining.done()
        state = stage.add(A, worker_id=ONE)
        worker.start(Claimed(state, ANN), slot)
        await draining
        assert stage.state(A) == replace(state, worker_id=None, snapshot_version=6)


async def test_a_drain_awaits_the_writes_it_is_given(stage: Stage) -> None:
    written = asyncio.Event()
    async with stage.worker() as worker, asyncio.TaskGroup() as group:
        stage.run_here(worker, A)
        await settle()
        draining = group.create_task(worker.drain(written.wait()))
        await settle()
        assert stage.runners.ended == []
        written.set()
        await draining
        assert stage.runners.ended == [A]


async def test_a_claim_that_never_comes_does_not_hold_up_a_drain(stage: Stage) -> None:
    async with stage.worker() as worker, asyncio.TaskGroup() as group:
        assert worker.reserve() is not None
        draining = group.create_task(worker.drain())
        await stage.pass_time(4.75)
        assert not draining.done()
        await stage.pass_time(0.25)
        await draining


async def test_a_runner_that_does_not_stop_does_not_hold_up_a_drain(stage: Stage) -> None:
    stage.runners.cancellations_to_swallow = 1
    async with stage.worker() as worker, asyncio.TaskGroup() as group:
        stage.run_here(worker, A)
        await settle()
        draining = group.create_task(worker.drain())
        await stage.pass_time(4.75)
        assert not draining.done()
        await stage.pass_time(0.25)
        await draining
        assert stage.state(A).worker_id is None
        assert stage.workers.rows[ONE].has_ended
        stage.runners.end(A)


async def test_a_chat_that_was_claimed_in_vain_is_released_too(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.add(A, worker_id=ONE)
        await worker.drain()
        assert stage.state(A) == replace(state, worker_id=None, snapshot_version=6)


async def test_a_drain_ends_even_when_the_database_is_gone(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await settle()
        stage.workers.is_down = True
        await worker.drain()
        assert stage.runners.ended == [A]
        assert stage.state(A) == state
        assert not worker.may_act()
