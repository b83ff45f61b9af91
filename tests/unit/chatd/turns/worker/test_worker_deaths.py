"""Deaths that are proven, workers that were declared dead, and turns that kill their owners."""

import pytest

from chatd.chats.domain.chat import NewMessage, Status
from chatd.chats.domain.commands import CommitStep
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId
from chatd.turns.worker.ports import WorkerLimits
from chatd.workers.engine.endings import WorkerEndings
from support.chatd.turns.in_memory_workers import WorkerRow
from support.chatd.turns.worker_stage import ANN, DEAD, ONE, TWO, A, B, C, Stage, settle

CONTACT_S = 9.0


@pytest.fixture
def stage() -> Stage:
    return Stage()


def started(stage: Stage) -> list[ChatId]:
    return [claimed.state.chat_id for claimed in stage.runners.started]


async def test_chats_of_a_worker_that_is_proven_dead_are_taken_over_at_once(stage: Stage) -> None:
    async with stage.worker(TWO):
        async with stage.worker(ONE) as killed:
            stage.run_here(killed, A)
            await settle()
        stage.runners.started.clear()
        endings = WorkerEndings(stage.workers, stage.publish)
        assert await endings.end(ONE) == 1
        await settle()
        assert started(stage) == [A]
        taken = stage.state(A)
        assert (taken.worker_id, taken.owner_epoch, taken.takeovers) == (TWO, 9, 1)


async def test_a_worker_that_was_declared_dead_stops_everything_and_says_so(stage: Stage) -> None:
    async with stage.worker() as worker:
        stage.run_here(worker, A)
        await settle()
        await WorkerEndings(stage.workers, stage.publish).end(ONE)
        await stage.pass_time(4.25)
        assert (stage.ended, stage.runners.ended) == ([ONE], [A])
        assert (worker.has_ended, worker.may_act(), worker.reserve(ANN.id)) == (True, False, None)
        left = stage.state(A)
        assert (left.worker_id, left.owner_epoch) == (None, 8)


async def test_suspects_are_left_to_a_quarantine_that_is_asked_for(stage: Stage) -> None:
    stage.add(A, takeovers=2)
    stage.add(C)
    async with stage.worker():
        await stage.pass_time(CONTACT_S + 4)
        assert started(stage) == [C]
        assert set(stage.quarantined) == {ONE}


async def test_a_suspect_that_appears_needs_no_tick_to_ask_for_a_quarantine(stage: Stage) -> None:
    stage.add(A, worker_id=DEAD, takeovers=1)
    stage.workers.rows[DEAD] = WorkerRow("unix:/dead", stage.clock.now())
    async with stage.worker():
        await WorkerEndings(stage.workers, stage.publish).end(DEAD)
        await settle()
        assert stage.quarantined == [ONE]


async def test_a_quarantine_runs_suspects_one_after_the_other_until_their_progress(
    stage: Stage,
) -> None:
    for chat_id in (A, B):
        stage.add(chat_id, takeovers=2)
    stage.add(C)
    limits = WorkerLimits(slots_max=1, running_per_user_max=10, is_quarantine=True)
    async with stage.worker(limits=limits) as worker:
        await stage.pass_time(CONTACT_S)
        assert started(stage) == [A]
        assert worker.reserve(ANN.id) is None
        answer = NewMessage(Role.ASSISTANT, (Text("one step"),))
        await stage.apply(A, CommitStep(fence_of(stage.state(A)), (answer,)))
        await settle()
        released = stage.state(A)
        assert (released.status, released.worker_id) == (Status.RUNNING, None)
        assert released.takeovers == 0
        assert started(stage) == [A, B]
        assert not worker.is_idle
        assert stage.state(C).worker_id is None
