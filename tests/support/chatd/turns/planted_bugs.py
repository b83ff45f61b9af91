"""Bugs that the core could have, each small, and how each is put into a simulation.

Most are another part of the simulation: a subclass that leaves out one rule. Where the product has
no place to put one in, one function of it is replaced for the length of a run.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chatd.chats.domain import action_answers, state_changes, transitions
from chatd.chats.domain.chat import ChatState, Claimed, Facts, PendingCall, Revert, Slot
from chatd.chats.domain.commands import (
    Command,
    ExpireAction,
    FinishRevert,
    Interrupt,
    WorkerCommand,
)
from chatd.chats.domain.errors import ActionNotOpen, QueuedMessageNotFound
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.writes import EndActions
from chatd.chats.store.applying import Applied, Unwritten, Wrote
from chatd.content.domain.parts import ToolResult
from chatd.content.domain.tools import (
    InputRequired,
    Outcome,
)
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    Fence,
    OwnerId,
    QueuedMessageId,
    WorkerId,
)
from chatd.primitives.domain.requests import ClientKey
from chatd.tools.agents.waits import AgentWaits
from chatd.turns.engine.calls import OpenCall, ToolCaller
from chatd.turns.engine.chat_run import ChatRun
from chatd.turns.engine.history import History
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.worker.reconciliation import Reconciler
from chatd.turns.worker.runners import Runners, SlotPool, Slots
from chatd.turns.worker.sweeps import Sweeper
from chatd.turns.worker.worker import Worker
from chatd.workers.domain import NamedChat
from chatd.workers.engine.lease_keeper import LeaseKeeper
from chatd.workers.engine.leases import Lease, LeaseTiming
from support.chatd.turns.in_memory_workers import InMemoryWorkers
from support.simulation.database import SimulatedDatabase
from support.simulation.loop import Stuck
from support.simulation.node import Parts
from support.simulation.rules import Author
from support.simulation.run import SOUND, simulate
from support.simulation.store import ConnectedApplier

# A process that has imported much already cannot have it rewritten.
OPTIONS = ("-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug: other parts of a simulation, or one function of the product that is replaced."""

    parts: Parts = SOUND
    owner: Any = None
    function: str = ""
    replacement: object = None

    @contextmanager
    def planted(self) -> Iterator[Parts]:
        """Put it in place while the context is open."""
        if self.owner is None:
            yield self.parts
            return
        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(self.owner, self.function, self.replacement)
            yield self.parts


def first_symptom(name: str, seeds: range) -> str | None:
    """Return how the first of the seeds fails with a bug in place, None if none does.

    Raises:
        Exception: the run broke in a way that no check makes; the bug is planted badly.
    """
    with BUGS[name].planted() as parts:
        for seed in seeds:
            try:
                simulate(seed, parts)
            except Exception as symptom:
                if not _is_noticed_by_a_check(symptom):
                    raise
                return f"seed {seed}: {type(symptom).__name__}: {symptom}"
    return None


def _is_noticed_by_a_check(symptom: BaseException) -> bool:
    if isinstance(symptom, BaseExceptionGroup):
        return any(_is_noticed_by_a_check(each) for each in symptom.exceptions)
    return isinstance(symptom, AssertionError | Stuck)


def is_noticed(name: str, directory: str) -> bool:
    """Return whether the test that is named for a bug fails with it in place, and only then."""
    bug, test = BUGS_FOR_TESTS[name]
    options = [*OPTIONS, f"{directory}/{test}"]
    sound = pytest.main(options)
    with bug.planted():
        ended = pytest.main(options)
    return (sound, ended) == (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class _OtherFence(ConnectedApplier):
    """Compares less of a fence than there is."""

    def _fence(self, asked: Fence, present: Fence) -> Fence:
        return asked

    async def _decide(
        self, seen: ChatState, command: Command, *, is_fresh: bool
    ) -> Decision | None:
        if isinstance(command, WorkerCommand):
            present = transitions.fence_of(seen)
            command = replace(command, fence=self._fence(command.fence, present))
        return await super()._decide(seen, command, is_fresh=is_fresh)


class FenceWithoutEpoch(_OtherFence):
    def _fence(self, asked: Fence, present: Fence) -> Fence:
        return replace(asked, owner_epoch=present.owner_epoch)


class FenceWithoutHistory(_OtherFence):
    def _fence(self, asked: Fence, present: Fence) -> Fence:
        return replace(asked, history_version=present.history_version)


class FenceWithoutAttempt(_OtherFence):
    def _fence(self, asked: Fence, present: Fence) -> Fence:
        return replace(asked, generation_attempt=present.generation_attempt)


class Unshielded(ConnectedApplier):
    async def apply(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None = None
    ) -> ChatState:
        return (await self._apply(chat_id, command, client_key)).state


class WithoutRecovery(ConnectedApplier):
    async def _outcome_after_outage(
        self, seen: ChatState, decision: Decision, client_key: ClientKey | None
    ) -> Wrote | Unwritten:
        return Unwritten.CUT_OFF


class TrustsTheVersion(ConnectedApplier):
    async def _outcome_after_outage(
        self, seen: ChatState, decision: Decision, client_key: ClientKey | None
    ) -> Wrote | Unwritten:
        stored = await self._read_with_retries(seen.chat_id, lambda: self._read(None, seen.chat_id))
        is_next = stored.snapshot_version == decision.state.snapshot_version
        return Wrote(stored) if is_next else Unwritten.CUT_OFF


class TrustsTheState(ConnectedApplier):
    async def _is_used(self, chat_id: ChatId, client_key: ClientKey) -> bool:
        return True


class RefusesFromMemory(ConnectedApplier):
    async def _decide(
        self, seen: ChatState, command: Command, *, is_fresh: bool
    ) -> Decision | None:
        return await super()._decide(seen, command, is_fresh=True)


class TellsNobody(ConnectedApplier):
    def _publish_write(self, seen: ChatState, decision: Decision, wrote: Wrote) -> Applied:
        self.known.learn(wrote.state)
        return Applied(wrote.state)


class Unguarded(SimulatedDatabase):
    def write(
        self, seen: ChatState, decision: Decision, key: str | None, author: Author
    ) -> ChatState | None:
        return super().write(self.chat(seen.chat_id).state, decision, key, author)


class Keyless(SimulatedDatabase):
    def write(
        self, seen: ChatState, decision: Decision, key: str | None, author: Author
    ) -> ChatState | None:
        return super().write(seen, decision, None, author)


class ClaimsInDrain(InMemoryWorkers):
    def may_claim(self, worker_id: WorkerId) -> bool:
        row = self.rows.get(worker_id)
        if row is not None:
            self.rows[worker_id] = replace(row, is_draining=False)
        is_allowed = super().may_claim(worker_id)
        if row is not None:
            self.rows[worker_id] = row
        return is_allowed


class ClaimsWithoutLease(InMemoryWorkers):
    def may_claim(self, worker_id: WorkerId) -> bool:
        row = self.rows.get(worker_id)
        return row is not None and not row.is_draining


class ClaimsWithoutMargin(InMemoryWorkers):
    def may_claim(self, worker_id: WorkerId) -> bool:
        row = self.rows.get(worker_id)
        return row is not None and not row.is_draining and row.lease_until > self._clock.now()


class ForgetsReverts(InMemoryWorkers):
    def _claim(self, state: ChatState, worker_id: WorkerId) -> Claimed:
        return super()._claim(replace(state, revert=None), worker_id)


class ForgetsTakeovers(InMemoryWorkers):
    def _claim(self, state: ChatState, worker_id: WorkerId) -> Claimed:
        stored = self._chats.chats[state.chat_id].state
        return super()._claim(replace(state, takeovers=stored.takeovers), worker_id)


def over(workers: type[InMemoryWorkers]) -> Parts:
    """Return parts with other statements about workers."""

    class Database(SimulatedDatabase):
        def new_workers(self) -> InMemoryWorkers:
            return workers(self.chats, self.clock)

    return Parts(database=Database)


def _act_without_lease(self: LeaseKeeper) -> bool:
    return self._lease is not None


def _act_to_the_end(self: LeaseKeeper) -> bool:
    lease, now = self._lease, self._clock.monotonic()
    return lease is not None and now < lease.valid_until(self._timing)


async def _hand_nothing_over(self: Worker) -> None:
    return


async def _attend_nobody(self: Reconciler, chat_id: ChatId, owner_epoch: int) -> None:
    return


async def _park_nobody(self: Sweeper) -> None:
    return


def _keep_slot(self: SlotPool, slot: Slot) -> None:
    return


_run_alone = Runners._run


async def _run_beside(
    self: Runners, claimed: Claimed, mailbox: Mailbox, predecessor: object
) -> None:
    await _run_alone(self, claimed, mailbox, None)


async def _end_nothing(self: Runners, claimed: Claimed) -> None:
    return None


def _judge_at_once(self: Lease, now: float, timing: LeaseTiming) -> bool:
    return self.may_act(now, timing)


async def _wait_for_another_owner(self: Mailbox, fence: Fence) -> ChatState:
    while True:
        newest = self._newest
        if newest.owner_epoch != fence.owner_epoch:
            return newest
        self._changed.clear()
        await self._changed.wait()


_catch_up = History.catch_up


async def _catch_up_once(self: History, chats: Any, state: ChatState) -> None:
    if not self.messages:
        await _catch_up(self, chats, state)


async def _send_again(self: ToolCaller, open_call: OpenCall) -> Outcome | InputRequired:
    dispatch = open_call.execution.dispatch
    again = replace(dispatch, execution_id=ExecutionId(f"{dispatch.execution_id} again"))
    return await self._tools.execute(replace(open_call.execution, dispatch=again))


def _open_next_episode(moved: ChatState) -> ChatState:
    return replace(moved, generation_attempt=1, retry=None)


def _require_the_fact(moved: ChatState, wanted: QueuedMessageId, facts: Facts) -> None:
    if not facts.is_queued:
        raise QueuedMessageNotFound(wanted)


_is_done = transitions._is_done_already


def _is_done_whatever_the_turn(state: ChatState, command: Command) -> bool:
    if isinstance(command, Interrupt):
        command = replace(command, turn_id=state.turn_id)
    return _is_done(state, command)


async def _expire_whatever_is_open(self: Sweeper) -> None:
    ports = self._ports
    for due in await ports.claims.due_actions(self._limits.acquire_batch_max):
        for state in await ports.claims.states((due.chat_id,)):
            asked = [call.execution_id for call in state.pending if call.is_asked]
            with suppress(ChatError):
                await ports.apply(due.chat_id, ExpireAction(next(iter(asked), None), None))


async def _hear_nothing(self: Reconciler, named: tuple[NamedChat, ...]) -> None:
    return


async def _wait_for_nobody(self: Slots) -> None:
    return


_reserve = SlotPool.reserve


def _reserve_in_drain(self: SlotPool, owner_id: OwnerId | None = None) -> Slot | None:
    is_draining, self.is_draining = self.is_draining, False
    try:
        return _reserve(self, owner_id)
    finally:
        self.is_draining = is_draining


async def _sweep_as_known(self: Sweeper) -> None:
    keeper, may_take_over = self._keeper, self._keeper.may_take_over()
    if self._is_round_due and may_take_over:
        self._is_round_due = False
        await self._park()
        await self._expire_actions()
    if may_take_over:
        keeper._lease = replace(keeper._lease or Lease(0, 0, 0), contact_since=-1000.0)
    await self._claim_waiting()


async def _revert_history_only(self: ChatRun, revert: Revert) -> None:
    await self._session.apply(FinishRevert(self._session.fence, b""))


async def _look_for_no_wait(self: AgentWaits) -> None:
    return


# Found by the simulation itself.
def _open_whatever_the_action(state: ChatState, action_id: ExecutionId) -> PendingCall:
    for call in state.pending:
        if call.is_asked:
            return call
    raise ActionNotOpen(action_id)


def _results_without_an_end(
    moved: ChatState,
    results: tuple[ToolResult, ...],
    ended: EndActions,
    claimed_by: WorkerId | None,
) -> Decision:
    return _with_results(moved, results, replace(ended, answers=()), claimed_by)


_with_results = action_answers.with_results


def _leave_all_at_executors(state: ChatState) -> tuple[ExecutionId, ...]:
    return ()


def _leave_running_at_executors(state: ChatState) -> tuple[ExecutionId, ...]:
    return tuple(
        call.execution_id
        for call in state.pending
        if call.is_suspended and call.execution_id is not None
    )


BUGS = {
    "a fence without the owner's epoch": Bug(Parts(applier=FenceWithoutEpoch)),
    "a fence without the history": Bug(Parts(applier=FenceWithoutHistory)),
    "a fence without the attempt": Bug(Parts(applier=FenceWithoutAttempt)),
    "a write that can be cancelled": Bug(Parts(applier=Unshielded)),
    "no recovery after an unknown commit": Bug(Parts(applier=WithoutRecovery)),
    "a version taken for one's own commit": Bug(Parts(applier=TrustsTheVersion)),
    "a state taken for one's own commit": Bug(Parts(applier=TrustsTheState)),
    "a refusal from memory": Bug(Parts(applier=RefusesFromMemory)),
    "commits that nobody is told of": Bug(Parts(applier=TellsNobody)),
    "writes without a guard": Bug(Parts(database=Unguarded)),
    "requests without a key": Bug(Parts(database=Keyless)),
    "a claim in drain": Bug(over(ClaimsInDrain)),
    "a claim without a lease": Bug(over(ClaimsWithoutLease)),
    "a claim in the last seconds of a lease": Bug(over(ClaimsWithoutMargin)),
    "takeovers that are not counted": Bug(over(ForgetsTakeovers)),
    "takeovers that progress does not forgive": Bug(
        SOUND, transitions, "next_episode", _open_next_episode
    ),
    "effects without a lease": Bug(SOUND, LeaseKeeper, "may_act", _act_without_lease),
    "effects in the last seconds of a lease": Bug(SOUND, LeaseKeeper, "may_act", _act_to_the_end),
    "a drain that hands nothing over": Bug(SOUND, Worker, "_release_owned", _hand_nothing_over),
    "claims without a runner": Bug(SOUND, Reconciler, "_attend", _attend_nobody),
    "chats that kill their owners for ever": Bug(SOUND, Sweeper, "_park", _park_nobody),
    "slots that are never given back": Bug(SOUND, SlotPool, "release_if_reserved", _keep_slot),
    "two runners of one chat": Bug(SOUND, Runners, "_run", _run_beside),
    "a crash that ends nothing": Bug(SOUND, Runners, "_end", _end_nothing),
    "judging others right after an outage": Bug(SOUND, Lease, "may_sweep", _judge_at_once),
    "interruptions that nobody hears": Bug(
        SOUND, Mailbox, "until_superseded", _wait_for_another_owner
    ),
    "a history that is never brought up to date": Bug(SOUND, History, "catch_up", _catch_up_once),
    "a call that is sent again": Bug(SOUND, ToolCaller, "_recover", _send_again),
    "facts that are newer than the state": Bug(
        SOUND, transitions, "_require_queued", _require_the_fact
    ),
    "an interrupt that stops the next turn": Bug(
        SOUND, transitions, "_is_done_already", _is_done_whatever_the_turn
    ),
    "a deadline that cancels a newer action": Bug(
        SOUND, Sweeper, "_expire_actions", _expire_whatever_is_open
    ),
    "an answer that is taken for another action": Bug(
        SOUND, action_answers, "open_action", _open_whatever_the_action
    ),
    "an answer that leaves its action open": Bug(
        SOUND, action_answers, "with_results", _results_without_an_end
    ),
    "a revert that its next owner forgets": Bug(over(ForgetsReverts)),
    "a revert that leaves the files as they are": Bug(
        SOUND, ChatRun, "_revert", _revert_history_only
    ),
    "waits for agents that nobody ends": Bug(SOUND, AgentWaits, "_round", _look_for_no_wait),
    "calls that ask and are left at their executors": Bug(
        SOUND, state_changes, "calls_at_executors", _leave_all_at_executors
    ),
    "calls that may ask later and are left at their executors": Bug(
        SOUND, state_changes, "calls_at_executors", _leave_running_at_executors
    ),
}

# Too rare there, or made good by something else: the test that notices each of them.
BUGS_FOR_TESTS = {
    "runners that hear nothing from renewals": (
        Bug(SOUND, Reconciler, "_refresh", _hear_nothing),
        "test_worker_reconciliation.py"
        "::test_a_missed_notification_is_made_good_at_the_next_renewal",
    ),
    "slots that are given in a drain": (
        Bug(SOUND, SlotPool, "reserve", _reserve_in_drain),
        "test_worker_drain.py::test_a_draining_worker_gives_no_slots_and_sweeps_nothing",
    ),
    "a drain that does not wait for claims": (
        Bug(SOUND, Slots, "until_unreserved", _wait_for_nobody),
        "test_worker_drain.py::test_a_drain_waits_for_claims_that_are_under_way",
    ),
    "a sweep by what was known before an outage": (
        Bug(SOUND, Sweeper, "_sweep", _sweep_as_known),
        "test_worker_actions.py"
        "::test_after_an_answer_that_waited_for_an_outage_nobody_is_held_for_dead_at_once",
    ),
}
