from contextvars import ContextVar, copy_context
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import Claimed, NewMessage, Status
from chatd.chats.domain.commands import (
    BusyBehavior,
    FinishTurn,
    Interrupt,
    SendMessage,
)
from chatd.chats.domain.errors import FenceLost
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import ErrorKind, Role, TurnError
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, OwnerId, QueuedMessageId, WorkerId
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.worker.ports import WorkerLimits
from chatd.workers.domain import CRASH_LOOP, NamedChat
from parley.postgres import DatabaseUnavailable
from support.chatd.turns.in_memory_workers import InMemoryWorkers
from support.chatd.turns.worker_stage import (
    ANN,
    BOB,
    DEAD,
    LIMITS,
    ONE,
    TWO,
    A,
    B,
    HeldRunners,
    Stage,
    settle,
)

CRASHED = TurnError("The chat request failed.", ErrorKind.GENERIC, is_retryable=True)
HELLO = NewMessage(Role.USER, (Text("hello"),), "ann")
CONTACT_S = 9.0


@pytest.fixture
def stage() -> Stage:
    return Stage()


def started(stage: Stage) -> list[ChatId]:
    return [claimed.state.chat_id for claimed in stage.runners.started]


async def test_a_claim_on_write_needs_a_slot(stage: Stage) -> None:
    async with stage.worker(limits=replace(LIMITS, slots_max=2)) as worker:
        slot = worker.reserve()
        assert slot is not None
        stage.run_here(worker, A)
        assert worker.reserve() is None
        worker.release_slot(slot)
        assert worker.reserve() is not None


async def test_a_user_who_runs_enough_here_gets_no_slot(stage: Stage) -> None:
    limits = WorkerLimits(slots_max=5, running_per_user_max=1)
    async with stage.worker(limits=limits) as worker:
        stage.run_here(worker, A, ANN)
        assert worker.reserve(ANN.id) is None
        assert worker.reserve(BOB.id) is not None
        assert worker.reserve() is not None


async def test_a_started_chat_has_a_runner_and_a_mailbox_until_it_ends(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await settle()
        assert stage.runners.started == [Claimed(state, ANN)]
        assert worker.mailbox(A) is not None
        assert worker.mailbox(A) is stage.runners.mailboxes[A]
        await stage.apply(A, FinishTurn(fence_of(state), ()))
        stage.runners.end(A)
        await settle()
        assert worker.mailbox(A) is None
        assert worker.mailbox(A) is None
        assert stage.state(A).status is Status.WAITING


async def test_a_state_that_was_not_claimed_gives_the_slot_back(stage: Stage) -> None:
    async with stage.worker(limits=replace(LIMITS, slots_max=1)) as worker:
        slot = worker.reserve()
        assert slot is not None
        worker.start(Claimed(stage.add(A, worker_id=TWO), ANN), slot)
        assert worker.mailbox(A) is None
        assert worker.reserve() is not None


async def test_a_chat_that_runs_already_is_told_and_not_started_twice(stage: Stage) -> None:
    async with stage.worker(limits=replace(LIMITS, slots_max=2)) as worker:
        state = stage.run_here(worker, A)
        slot = worker.reserve()
        assert slot is not None
        longer = replace(state, snapshot_version=6, queue_length=1)
        worker.start(Claimed(longer, ANN), slot)
        await settle()
        assert len(stage.runners.started) == 1
        assert stage.runners.mailboxes[A].newest == longer
        assert worker.reserve() is not None


async def test_a_chat_claimed_anew_starts_after_its_old_runner_ended(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await settle()
        stage.runners.cancellations_to_swallow = 1
        slot = worker.reserve()
        assert slot is not None
        anew = replace(state, snapshot_version=6, owner_epoch=8)
        stage.store(anew)
        worker.start(Claimed(anew, ANN), slot)
        await settle()
        assert len(stage.runners.started) == 1
        stage.runners.end(A)
        await settle()
        assert [claimed.state for claimed in stage.runners.started] == [state, anew]
        assert worker.mailbox(A) is not None


async def test_news_that_overtakes_the_start_is_not_lost(stage: Stage) -> None:
    async with stage.worker() as worker:
        slot = worker.reserve()
        assert slot is not None
        state = stage.add(A, worker_id=ONE)
        stopping = await stage.apply(A, Interrupt(state.turn_id, None))
        worker.start(Claimed(state, ANN), slot)
        await settle()
        assert stage.runners.mailboxes[A].newest == stopping
        assert stopping.status is Status.INTERRUPTING


async def test_a_new_process_judges_others_only_after_some_seconds_of_contact(
    stage: Stage,
) -> None:
    stage.add(A, worker_id=DEAD)
    async with stage.worker():
        await stage.pass_time(7.75)
        assert started(stage) == []
        await stage.pass_time(2.75)
        assert started(stage) == [A]
        assert stage.state_changed == [stage.state(A)]
        assert (stage.state(A).worker_id, stage.state(A).owner_epoch) == (ONE, 8)


async def test_a_new_process_takes_at_once_what_names_nobody(stage: Stage) -> None:
    stage.add(A)
    stage.add(B, worker_id=DEAD)
    async with stage.worker() as worker:
        worker.poke()
        await settle()
        assert started(stage) == [A]


async def test_a_poked_worker_sweeps_at_once(stage: Stage) -> None:
    async with stage.worker() as worker:
        await stage.pass_time(CONTACT_S)
        stage.add(A)
        worker.poke()
        await settle()
        assert started(stage) == [A]


async def test_news_of_a_chat_without_an_owner_makes_it_sweep(stage: Stage) -> None:
    async with stage.worker() as worker:
        await stage.pass_time(CONTACT_S)
        worker.deliver(stage.add(A))
        await settle()
        assert started(stage) == [A]


async def test_sweeps_come_about_every_two_seconds_by_themselves(stage: Stage) -> None:
    async with stage.worker():
        await stage.pass_time(CONTACT_S)
        stage.add(A)
        await stage.pass_time(2.5)
        assert started(stage) == [A]


async def test_a_freed_slot_is_filled_at_once(stage: Stage) -> None:
    async with stage.worker(limits=replace(LIMITS, slots_max=1)) as worker:
        state = stage.run_here(worker, A)
        stage.add(B)
        await stage.pass_time(CONTACT_S)
        assert started(stage) == [A]
        await stage.apply(A, FinishTurn(fence_of(state), ()))
        stage.runners.end(A)
        await settle()
        assert started(stage) == [A, B]


async def test_more_chats_than_a_batch_are_taken_in_several(stage: Stage) -> None:
    ids = [ChatId(f"chat-{number}") for number in range(7)]
    for chat_id in ids:
        stage.add(chat_id)
    limits = WorkerLimits(slots_max=6, running_per_user_max=10, acquire_batch_max=2)
    async with stage.worker(limits=limits):
        await stage.pass_time(CONTACT_S + 2)
        assert started(stage) == ids[:6]


async def test_two_workers_share_what_waits(stage: Stage) -> None:
    for number in range(6):
        stage.add(ChatId(f"chat-{number}"))
    async with stage.worker(ONE), stage.worker(TWO):
        await stage.pass_time(CONTACT_S + 2)
        owners = [stage.state(ChatId(f"chat-{number}")).worker_id for number in range(6)]
        assert sorted(owner or "" for owner in owners) == [ONE] * 3 + [TWO] * 3


async def test_the_chats_of_a_killed_worker_are_taken_over_after_its_lease(stage: Stage) -> None:
    async with stage.worker(TWO):
        async with stage.worker(ONE) as killed:
            stage.run_here(killed, A)
            await stage.pass_time(CONTACT_S)
        stage.runners.started.clear()
        await stage.pass_time(10)
        assert started(stage) == []
        await stage.pass_time(8)
        assert started(stage) == [A]
        taken = stage.state(A)
        assert (taken.worker_id, taken.owner_epoch, taken.takeovers) == (TWO, 8, 1)
        assert taken.generation_attempt == 3


async def test_a_chat_whose_owners_keep_dying_is_parked_and_told(stage: Stage) -> None:
    stage.add(A, worker_id=DEAD, takeovers=3)
    async with stage.worker():
        await stage.pass_time(CONTACT_S + 2)
        assert started(stage) == []
        assert stage.state(A).status is Status.ERROR
        assert stage.state(A).last_error == CRASH_LOOP
        assert stage.state_changed == [stage.state(A)]


async def test_a_crashed_runner_becomes_an_error_of_its_chat(stage: Stage) -> None:
    async with stage.worker() as worker:
        stage.run_here(worker, A)
        stage.run_here(worker, B)
        await settle()
        stage.runners.crash(A, RuntimeError("a bug"))
        await settle()
        assert worker.mailbox(A) is None
        assert (stage.state(A).status, stage.state(A).last_error) == (Status.ERROR, CRASHED)
        assert worker.mailbox(B) is not None


async def test_a_runner_that_leaves_its_chat_running_counts_as_crashed(stage: Stage) -> None:
    async with stage.worker() as worker:
        stage.run_here(worker, A)
        await settle()
        stage.runners.end(A)
        await settle()
        assert (stage.state(A).status, stage.state(A).last_error) == (Status.ERROR, CRASHED)


async def test_a_crash_in_an_interruption_finishes_it_and_the_queue_goes_on(stage: Stage) -> None:
    async with stage.worker() as worker:
        stage.run_here(worker, A)
        await settle()
        urgent = SendMessage(HELLO, QueuedMessageId("q1"), None, BusyBehavior.INTERRUPT)
        await stage.apply(A, urgent)
        stage.runners.crash(A, RuntimeError("a bug"))
        await settle()
        assert started(stage) == [A, A]
        assert stage.runners.started[1].state == stage.state(A)
        assert stage.state(A).status is Status.RUNNING
        assert [message.content for message in await stage.chats.history(A)] == [HELLO.content]
        stage.runners.crash(A, RuntimeError("a bug"))
        await settle()
        assert (stage.state(A).status, worker.mailbox(A)) == (Status.ERROR, None)


async def test_a_runner_that_lost_its_fence_ends_quietly(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await settle()
        taken = replace(state, snapshot_version=6, owner_epoch=8, worker_id=TWO)
        stage.store(taken)
        stage.runners.crash(A, FenceLost(A))
        await settle()
        assert worker.mailbox(A) is None
        assert stage.state(A) == taken


async def test_a_runner_that_lost_an_episode_of_its_own_chat_is_replaced(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await settle()
        stage.runners.crash(A, FenceLost(A))
        await stage.pass_time(9)
        assert worker.mailbox(A) is not None
        assert stage.state(A) == replace(
            state, owner_epoch=8, snapshot_version=6, generation_attempt=3
        )


async def test_a_crash_of_a_chat_that_was_lost_writes_nothing(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await settle()
        taken = replace(state, snapshot_version=6, owner_epoch=8, worker_id=TWO)
        stage.store(taken)
        stage.runners.crash(A, RuntimeError("a bug"))
        await settle()
        assert worker.mailbox(A) is None
        assert stage.state(A) == taken


async def test_a_crash_during_an_outage_is_made_good_afterwards(stage: Stage) -> None:
    async with stage.worker() as worker:
        stage.run_here(worker, A)
        await settle()
        stage.workers.is_down = True
        stage.runners.crash(A, RuntimeError("a bug"))
        await stage.pass_time(2)
        assert worker.mailbox(A) is None
        stage.workers.is_down = False
        await stage.pass_time(9)
        assert worker.mailbox(A) is not None
        assert (stage.state(A).owner_epoch, stage.state(A).generation_attempt) == (8, 3)


async def test_a_worker_fences_itself_before_its_lease_ends(stage: Stage) -> None:
    async with stage.worker() as worker:
        stage.run_here(worker, A)
        stage.workers.is_down = True
        await stage.pass_time(11.75)
        assert worker.may_act()
        await stage.pass_time(0.25)
        assert not worker.may_act()
        assert worker.reserve() is None
        assert worker.mailbox(A) is not None
        stage.workers.is_down = False
        await stage.pass_time(1)
        assert worker.may_act()
        assert worker.reserve() is not None


async def test_after_an_outage_others_get_time_to_renew(stage: Stage) -> None:
    async with stage.worker(ONE), stage.worker(TWO) as survivor:
        await stage.pass_time(CONTACT_S)
        stage.run_here(survivor, A)
        stage.workers.is_down = True
        await stage.pass_time(30)
        stage.workers.is_down = False
        await stage.pass_time(20)
        assert started(stage) == [A]
        assert stage.state(A).owner_epoch == 7


async def test_one_failed_renewal_is_enough_to_stop_sweeping_for_a_while(stage: Stage) -> None:
    class OneFailure(InMemoryWorkers):
        has_failed = False

        async def renew(self, worker_id: WorkerId, lease_s: float) -> tuple[NamedChat, ...] | None:
            if stage.clock.monotonic() >= 12 and not self.has_failed:
                self.has_failed = True
                raise DatabaseUnavailable("once")
            return await super().renew(worker_id, lease_s)

    stage.workers = OneFailure(stage.chats, stage.clock)
    async with stage.worker() as worker:
        await stage.pass_time(12)
        stage.add(A, worker_id=DEAD)
        await stage.pass_time(8)
        assert worker.may_act()
        assert started(stage) == []
        await stage.pass_time(4)
        assert started(stage) == [A]


async def test_a_worker_whose_row_is_gone_registers_again_and_keeps_its_chats(
    stage: Stage,
) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await stage.pass_time(1)
        stage.workers.rows.clear()
        await stage.pass_time(8)
        assert list(stage.workers.rows) == [ONE]
        assert worker.may_act()
        assert worker.mailbox(A) is not None
        assert stage.state(A) == state


async def test_cancelling_a_worker_cancels_its_runners_and_leaves_the_lease(stage: Stage) -> None:
    async with stage.worker() as worker:
        state = stage.run_here(worker, A)
        await settle()
    assert stage.runners.ended == [A]
    assert stage.state(A) == state
    assert not worker.may_act()
    assert list(stage.workers.rows) == [ONE]


async def test_the_user_of_a_slot_is_only_counted_while_the_chat_runs(stage: Stage) -> None:
    limits = WorkerLimits(slots_max=5, running_per_user_max=1)
    async with stage.worker(limits=limits) as worker:
        state = stage.run_here(worker, A, ANN)
        await settle()
        await stage.apply(A, FinishTurn(fence_of(state), ()))
        stage.runners.end(A)
        await settle()
        assert worker.reserve(OwnerId(ANN.id)) is not None


async def test_a_chat_that_is_claimed_anew_counts_once(stage: Stage) -> None:
    limits = WorkerLimits(slots_max=5, running_per_user_max=2)
    async with stage.worker(limits=limits) as worker:
        state = stage.run_here(worker, A, ANN)
        slot = worker.reserve(ANN.id)
        assert slot is not None
        anew = replace(state, snapshot_version=6, owner_epoch=8)
        stage.store(anew)
        worker.start(Claimed(anew, ANN), slot)
        await settle()
        stage.run_here(worker, B, ANN)
        assert worker.reserve(ANN.id) is None


async def test_a_runner_does_not_see_the_call_that_started_it(stage: Stage) -> None:
    caller: ContextVar[str] = ContextVar("caller", default="nobody")
    seen: list[str] = []

    class Looking(HeldRunners):
        async def run(self, claimed: Claimed, mailbox: Mailbox) -> None:
            seen.append(caller.get())
            await super().run(claimed, mailbox)

    stage.runners = Looking()
    async with stage.worker() as worker:
        caller.set("ann")
        stage.run_here(worker, A)
        slot = worker.reserve()
        assert slot is not None
        worker.start(Claimed(stage.add(B, worker_id=ONE), ANN), slot, copy_context())
        await settle()
        assert seen == ["nobody", "ann"]
