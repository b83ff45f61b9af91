import asyncio
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import Claimed, Status
from chatd.chats.domain.commands import FinishTurn
from chatd.chats.domain.transitions import fence_of
from chatd.primitives.domain.ids import WorkerId
from chatd.workers.domain import NamedChat
from support.chatd.turns.in_memory_workers import InMemoryWorkers
from support.chatd.turns.worker_stage import ANN, LIMITS, ONE, TWO, A, B, Stage, settle

RENEWAL_S = 4.0


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_chat_that_two_renewals_find_without_a_runner_is_claimed_anew(
    stage: Stage,
) -> None:
    async with stage.worker() as worker:
        lost = stage.add(A, worker_id=ONE, takeovers=1)
        await stage.pass_time(RENEWAL_S)
        assert stage.state(A) == lost
        await stage.pass_time(RENEWAL_S)
        anew = replace(lost, owner_epoch=8, snapshot_version=6, generation_attempt=3)
        assert stage.state(A) == anew
        assert stage.state_changed == [anew]
        assert stage.runners.started == [Claimed(anew, ANN)]
        assert worker.mailbox(A) is not None


async def test_a_claim_that_starts_between_two_renewals_is_left_alone(stage: Stage) -> None:
    async with stage.worker() as worker:
        slot = worker.reserve()
        assert slot is not None
        state = stage.add(A, worker_id=ONE)
        await stage.pass_time(RENEWAL_S)
        worker.start(Claimed(state, ANN), slot)
        await stage.pass_time(RENEWAL_S)
        assert stage.state(A) == state
        assert len(stage.runners.started) == 1


async def test_without_a_slot_a_chat_without_a_runner_is_released(stage: Stage) -> None:
    async with stage.worker(limits=replace(LIMITS, slots_max=1)) as worker:
        stage.run_here(worker, A)
        lost = stage.add(B, worker_id=ONE)
        await stage.pass_time(2 * RENEWAL_S)
        assert stage.state(B) == replace(lost, worker_id=None, snapshot_version=6)
        assert worker.mailbox(B) is None


async def test_a_runner_whose_chat_has_another_owner_is_cancelled(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        stage.run_here(worker, B)
        taken = replace(state, snapshot_version=6, owner_epoch=8, worker_id=TWO)
        stage.store(taken)
        await stage.pass_time(RENEWAL_S)
        assert worker.mailbox(A) is None
        assert worker.mailbox(B) is not None
        assert stage.runners.ended == [A]
        assert stage.state(A) == taken


async def test_a_runner_whose_chat_was_deleted_is_cancelled(stage: Stage) -> None:
    async with stage.worker() as worker:
        stage.run_here(worker, A)
        await settle()
        del stage.chats.chats[A]
        await stage.pass_time(RENEWAL_S)
        assert worker.mailbox(A) is None
        assert stage.runners.ended == [A]


async def test_a_runner_whose_chat_is_at_rest_is_told_and_then_cancelled(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await settle()
        await stage.chats.apply(A, FinishTurn(fence_of(state), ()))
        await stage.pass_time(RENEWAL_S)
        assert worker.mailbox(A) is not None
        assert stage.runners.mailboxes[A].newest == stage.state(A)
        await stage.pass_time(RENEWAL_S)
        assert worker.mailbox(A) is None
        assert stage.state(A).status is Status.WAITING


async def test_a_missed_notification_is_made_good_at_the_next_renewal(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await settle()
        stopping = replace(state, status=Status.INTERRUPTING, snapshot_version=6)
        stage.store(stopping)
        await stage.pass_time(RENEWAL_S - 0.25)
        assert stage.runners.mailboxes[A].newest == state
        await stage.pass_time(0.25)
        assert stage.runners.mailboxes[A].newest == stopping
        assert worker.mailbox(A) is not None


async def test_a_chat_claimed_while_a_renewal_was_under_way_keeps_its_runner(
    stage: Stage,
) -> None:
    answers = asyncio.Event()

    class SlowToAnswer(InMemoryWorkers):
        async def renew(self, worker_id: WorkerId, lease_s: float) -> tuple[NamedChat, ...] | None:
            named = await super().renew(worker_id, lease_s)
            await answers.wait()
            return named

    stage.workers = SlowToAnswer(stage.chats, stage.clock)
    async with stage.worker() as worker:
        await stage.pass_time(RENEWAL_S)
        stage.run_here(worker, A)
        await settle()
        answers.set()
        await stage.pass_time(3 * RENEWAL_S)
        assert worker.mailbox(A) is not None
        assert stage.runners.ended == []


async def test_kept_news_of_a_chat_that_went_elsewhere_is_forgotten(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.add(A, worker_id=ONE)
        worker.deliver(replace(state, snapshot_version=99))
        stage.store(replace(state, snapshot_version=6, worker_id=TWO, owner_epoch=8))
        await stage.pass_time(RENEWAL_S)
        slot = worker.reserve()
        assert slot is not None
        back = replace(state, snapshot_version=7, owner_epoch=9)
        stage.store(back)
        worker.start(Claimed(back, ANN), slot)
        await settle()
        assert stage.runners.mailboxes[A].newest == back
