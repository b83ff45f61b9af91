"""The limit of running chats of one user: changed live, shared by processes, fair to others."""

import pytest

from chatd.chats.domain.commands import FinishTurn
from chatd.chats.domain.transitions import fence_of
from chatd.primitives.domain.ids import ChatId
from chatd.turns.worker.ports import WorkerLimits
from support.chatd.turns.worker_stage import ANN, BOB, ONE, TWO, A, B, C, Stage, settle


@pytest.fixture
def stage() -> Stage:
    return Stage()


def started(stage: Stage) -> list[ChatId]:
    return [claimed.state.chat_id for claimed in stage.runners.started]


async def test_claims_under_way_count_for_their_user(stage: Stage) -> None:
    limits = WorkerLimits(slots_max=5, running_per_user_max=2)
    async with stage.worker(limits=limits) as worker:
        first, second = worker.reserve(ANN.id), worker.reserve(ANN.id)
        assert first is not None
        assert second is not None
        assert worker.reserve(ANN.id) is None
        assert worker.reserve(BOB.id) is not None
        worker.release_slot(second)
        assert worker.reserve(ANN.id) is not None


async def test_a_raised_limit_lets_the_waiting_chats_of_a_user_run_at_once(stage: Stage) -> None:
    limits = WorkerLimits(slots_max=5, running_per_user_max=1)
    async with stage.worker(limits=limits) as worker:
        stage.run_here(worker, A, ANN)
        stage.add(B)
        stage.add(C)
        worker.poke()
        await settle()
        assert started(stage) == [A]
        worker.limit_running_per_user(3)
        await settle()
        assert started(stage) == [A, B, C]


async def test_a_lowered_limit_lets_running_chats_go_on_and_new_ones_wait(stage: Stage) -> None:
    limits = WorkerLimits(slots_max=5, running_per_user_max=3)
    async with stage.worker(limits=limits) as worker:
        stage.run_here(worker, A, ANN)
        state = stage.run_here(worker, B, ANN)
        worker.limit_running_per_user(1)
        await settle()
        stage.add(C)
        worker.poke()
        await settle()
        assert (started(stage), stage.runners.ended) == ([A, B], [])
        await stage.apply(B, FinishTurn(fence_of(state), ()))
        stage.runners.end(B)
        await settle()
        assert worker.reserve(ANN.id) is None
        assert started(stage) == [A, B]


async def test_the_next_chat_of_a_user_at_the_limit_runs_when_one_ends(stage: Stage) -> None:
    limits = WorkerLimits(slots_max=5, running_per_user_max=1)
    async with stage.worker(limits=limits) as worker:
        state = stage.run_here(worker, A, ANN)
        stage.add(B)
        worker.poke()
        await settle()
        await stage.apply(A, FinishTurn(fence_of(state), ()))
        stage.runners.end(A)
        await settle()
        assert started(stage) == [A, B]


async def test_processes_share_the_limit_of_a_user(stage: Stage) -> None:
    limits = WorkerLimits(slots_max=5, running_per_user_max=2)
    async with stage.worker(ONE, limits) as one, stage.worker(TWO, limits) as two:
        one.poke()
        two.poke()
        await settle()
        stage.run_here(one, A, ANN)
        assert one.reserve(ANN.id) is None
        stage.run_here(two, B, ANN)
        stage.add(C)
        one.poke()
        two.poke()
        await settle()
        assert started(stage) == [A, B]
