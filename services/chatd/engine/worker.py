"""The worker of this process: it holds a lease, claims chats, runs them and hands them over.

Four loops. One renews the lease on a connection of its own. One compares what each renewal says
that this worker owns with what runs here. One counts the time between sweeps, and one sweeps: on
that beat, when a slot is freed that somebody waits for, and when poked. Claims on write go round
the sweep: whoever writes reserves a slot first and starts the chat in it, or gives it back.

Slots are what keeps a claim from being lost: a drain waits until none is reserved before it looks
for what this worker owns, so a claim that is under way is either started or found and released.
"""

import asyncio
import logging
import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass

from chatd.domain.chat import ChatId, ChatState, OwnerId, WorkerId
from chatd.domain.commands import CancelRequiredAction, Release
from chatd.domain.errors import ChatError
from chatd.domain.transitions import fence_of
from chatd.domain.workers import Claimed, Claims, Leases, NamedChat, SweepLimits, is_ownerless
from chatd.engine.leases import Lease, LeaseTiming, contact_lost, renewed
from chatd.engine.mailbox import Mailbox
from chatd.engine.runners import Apply, Runner, Runners, Running
from chatd.engine.slots import Slot, Slots
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

__all__ = ["Apply", "Claimed", "Runner", "Slot", "Worker", "WorkerLimits", "WorkerPorts"]

logger = logging.getLogger(__name__)

HAND_OVER_ROUNDS_MAX = 3
ABSENT = float("inf")  # The version of a chat that a renewal did not name: newer than any known.


@dataclass(frozen=True, slots=True)
class WorkerPorts:
    """What a worker needs from the world.

    Attributes:
        moved: Told every state that the worker wrote itself, after its commit.
        offer: Tells the other processes that there may be something to sweep.
    """

    leases: Leases
    claims: Claims
    apply: Apply
    run_chat: Runner
    moved: Callable[[ChatState], None]
    offer: Callable[[], None]
    clock: Clock
    chance: random.Random


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """How much a worker takes on, and how patient it is when it drains."""

    slots_max: int
    running_per_user_max: int
    acquire_batch_max: int = 10
    sweep_every_s: float = 2.0
    claims_settle_max_s: float = 5.0
    runners_stop_max_s: float = 5.0


class Worker:
    """Owns chats for as long as `run` runs; `drain` hands them over and ends it."""

    def __init__(
        self,
        worker_id: WorkerId,
        *,
        address: str,
        ports: WorkerPorts,
        limits: WorkerLimits,
        timing: LeaseTiming | None = None,
    ) -> None:
        self.worker_id = worker_id
        self._address = address
        self._ports = ports
        self._clock = ports.clock
        self._limits = limits
        self._timing = timing or LeaseTiming()
        self._slots = Slots(limits.slots_max)
        self._runners = Runners(
            worker_id,
            run_chat=ports.run_chat,
            apply=ports.apply,
            claims=ports.claims,
            slots=self._slots,
            release=self.release_slot,
        )
        self._lease: Lease | None = None
        self._is_registered = asyncio.Event()
        self._named: tuple[NamedChat, ...] = ()  # What the last renewal said.
        self._is_renewed = asyncio.Event()
        self._unattended: frozenset[tuple[ChatId, int]] = frozenset()
        self._stray: frozenset[Running] = frozenset()
        self._is_poked = asyncio.Event()
        self._is_round_due = False
        self._was_refused = False
        self._is_draining = False
        self._is_drained = asyncio.Event()

    def may_act(self) -> bool:
        """Return whether a new effect may start: not when others may soon hold us for dead."""
        now = self._clock.monotonic()
        return self._lease is not None and self._lease.may_act(now, self._timing)

    def reserve(self, owner_id: OwnerId | None = None) -> Slot | None:
        """Return a slot for a claim on write, or None: then the chat waits for a sweep.

        With `owner_id` the user's limit counts too, as far as it is used in this process.
        """
        if self._is_draining or not self.may_act():
            return None
        slot = None
        users = 0 if owner_id is None else self._runners.count_of(owner_id)
        if users < self._limits.running_per_user_max:
            slot = self._slots.reserve()
        self._was_refused |= slot is None
        return slot

    def release_slot(self, slot: Slot) -> None:
        """Give a slot back; somebody who was refused one is looked for at once."""
        is_awaited = self._was_refused or self._slots.free == 0
        self._slots.give_back(slot)
        if is_awaited:
            self.poke()

    def start(self, claimed: Claimed, slot: Slot, context: Context | None = None) -> None:
        """Run what was claimed with `slot`; if nothing was, the slot is only given back.

        So a writer may pass any state that its command led to.
        """
        self._runners.start(claimed, slot, context)

    def owns(self, chat_id: ChatId) -> bool:
        """Return whether a runner of the chat is here."""
        return self._runners.get(chat_id) is not None

    def mailbox(self, chat_id: ChatId) -> Mailbox | None:
        """Return where the runner of a chat hears its news, if it is here."""
        running = self._runners.get(chat_id)
        return None if running is None else running.mailbox

    def deliver(self, state: ChatState) -> None:
        """Take news of any chat, from a commit of this process or from a read."""
        self._runners.deliver(state)
        if is_ownerless(state):
            self.poke()

    def poke(self) -> None:
        """Sweep now: somewhere a chat may wait for an owner."""
        self._is_poked.set()

    async def until_registered(self) -> None:
        """Wait until this worker may claim."""
        await self._is_registered.wait()

    async def run(self) -> None:
        """Hold the lease and run chats until drained; cancelling it leaves them to the lease."""
        try:
            async with asyncio.TaskGroup() as group:
                self._runners.open(group)
                loops = (
                    group.create_task(self._renew_for_ever()),
                    group.create_task(self._reconcile_for_ever()),
                    group.create_task(self._beat_for_ever()),
                    group.create_task(self._sweep_for_ever()),
                )
                await self._is_drained.wait()
                for loop in loops:
                    loop.cancel()
        finally:
            self._lease = None

    async def drain(self, applies: Awaitable[object] | None = None) -> None:
        """Claim nothing more, stop what runs, hand every chat over and let the lease end.

        Args:
            applies: Writes of this process that are under way and are awaited first.
        """
        if self._is_draining:
            await self._is_drained.wait()
            return
        self._is_draining = True
        try:
            await _logged("begin to drain", self._ports.leases.begin_drain(self.worker_id))
            if applies is not None:
                await self._within(self._limits.claims_settle_max_s, applies)
            settled = self._slots.until_none_is_reserved()
            await self._within(self._limits.claims_settle_max_s, settled)
            self._runners.close()
            await self._within(self._limits.runners_stop_max_s, self._runners.until_idle())
            await _logged("hand chats over", self._hand_over())
            await _logged("end the lease", self._ports.leases.expire(self.worker_id))
        finally:
            self._lease = None
            self._is_drained.set()
        self._ports.offer()

    async def _hand_over(self) -> None:
        """Release what names this worker, a chat that was claimed in vain included."""
        for _ in range(HAND_OVER_ROUNDS_MAX):
            owned = await self._ports.claims.owned(self.worker_id)
            if not owned:
                return
            for state in owned:
                with suppress(ChatError):  # It has moved; the next round sees where to.
                    await self._ports.apply(state.chat_id, Release(fence_of(state)))

    async def _renew_for_ever(self) -> None:
        while True:
            try:
                if self._is_registered.is_set():
                    await self._renew()
                else:
                    await self._register()
                delay_s = self._timing.renew_every_s
            except Exception:
                logger.exception("the lease could not be renewed")
                self._lease = contact_lost(self._lease)
                delay_s = self._timing.renew_again_s
            await self._clock.sleep(delay_s)

    async def _register(self) -> None:
        sent_at = self._clock.monotonic()
        lease_s = self._timing.lease_s
        await self._ports.leases.register(self.worker_id, self._address, lease_s)
        self._hold(sent_at)
        self._is_registered.set()

    async def _renew(self) -> None:
        sent_at = self._clock.monotonic()
        named = await self._ports.leases.renew(self.worker_id, self._timing.lease_s)
        if named is not None:
            self._hold(sent_at)
            self._named = named
            self._is_renewed.set()
        elif not self._is_draining:
            logger.error("the row of this worker is gone; it registers again")
            self._lease = None
            self._is_registered.clear()
            await self._register()

    def _hold(self, sent_at: float) -> None:
        answered_at = self._clock.monotonic()
        self._lease = renewed(
            self._lease, sent_at=sent_at, answered_at=answered_at, timing=self._timing
        )

    async def _reconcile_for_ever(self) -> None:
        while True:
            await self._is_renewed.wait()
            self._is_renewed.clear()
            try:
                await self._reconcile(self._named)
            except Exception:
                logger.exception("what runs could not be compared with what is owned")

    async def _reconcile(self, named: tuple[NamedChat, ...]) -> None:
        """Bring what runs here and what names this worker together again."""
        self._runners.forget_news(frozenset(chat.chat_id for chat in named))
        unattended = frozenset(
            (chat.chat_id, chat.owner_epoch) for chat in named if not self._is_attended(chat)
        )
        await self._refresh(named)
        for chat_id, owner_epoch in sorted(unattended & self._unattended):
            await self._attend(chat_id, owner_epoch)
        self._unattended = unattended

    def _is_attended(self, chat: NamedChat) -> bool:
        running = self._runners.get(chat.chat_id)
        return running is not None and running.owner_epoch >= chat.owner_epoch

    async def _refresh(self, named: tuple[NamedChat, ...]) -> None:
        """Tell runners what they missed, and cancel those whose chat is not theirs any more."""
        versions = {chat.chat_id: chat.snapshot_version for chat in named}
        behind = {
            each.claimed.state.chat_id: each
            for each in self._runners.running
            if versions.get(each.claimed.state.chat_id, ABSENT)
            > each.mailbox.newest.snapshot_version
        }
        if not behind:
            self._stray = frozenset()
            return
        found = {each.chat_id: each for each in await self._ports.claims.states(tuple(behind))}
        stray = set()
        for chat_id, running in behind.items():
            state = found.get(chat_id)
            if state is None or state.owner_epoch > running.owner_epoch:
                running.task.cancel()
                continue
            running.mailbox.put(state)
            if state.worker_id != self.worker_id:
                stray.add(running)  # It may be about to end by itself; next time it is cancelled.
        for running in stray & self._stray:
            running.task.cancel()
        self._stray = frozenset(stray)

    async def _attend(self, chat_id: ChatId, owner_epoch: int) -> None:
        """Claim a chat anew that two renewals found without a runner, or release it."""
        if self._is_draining or not self.may_act():
            return
        logger.warning("a chat of this worker had no runner", extra={"chat_id": chat_id})
        slot = self.reserve()
        if slot is None:
            for state in await self._ports.claims.states((chat_id,)):
                if (state.worker_id, state.owner_epoch) == (self.worker_id, owner_epoch):
                    with suppress(ChatError):
                        await self._ports.apply(chat_id, Release(fence_of(state)))
            return
        try:
            claimed = await self._ports.claims.reclaim(self.worker_id, chat_id, owner_epoch)
            if claimed is not None:
                self._ports.moved(claimed.state)
                self.start(claimed, slot)
        finally:
            self._give_back_if_reserved(slot)

    async def _beat_for_ever(self) -> None:
        while True:
            every_s = self._limits.sweep_every_s * self._ports.chance.uniform(0.75, 1.25)
            await self._clock.sleep(every_s)
            self._is_round_due = True
            self.poke()

    async def _sweep_for_ever(self) -> None:
        while True:
            await self._is_poked.wait()
            self._is_poked.clear()
            try:
                await self._sweep()
            except DatabaseUnavailable as outage:
                logger.warning("no sweep: %s", outage)
                self._lease = contact_lost(self._lease)
            except Exception:
                logger.exception("a sweep failed")

    async def _sweep(self) -> None:
        if self._is_draining or not self.may_act():
            return
        if self._is_round_due and self._may_judge_others():
            self._is_round_due = False
            await self._park()
            await self._answer_for_late_clients()
        await self._take()

    def _may_judge_others(self) -> bool:
        """Return whether chats of others may be held for abandoned."""
        now = self._clock.monotonic()
        return self._lease is not None and self._lease.may_sweep(now, self._timing)

    async def _park(self) -> None:
        batch_max = self._limits.acquire_batch_max
        for state in await self._ports.claims.park(self.worker_id, batch_max):
            logger.error("a chat was parked", extra={"chat_id": state.chat_id})
            self._ports.moved(state)

    async def _answer_for_late_clients(self) -> None:
        for due in await self._ports.claims.due_actions(self._limits.acquire_batch_max):
            slot = self.reserve(due.owner.id)
            claimed_by = None if slot is None else self.worker_id
            command = CancelRequiredAction(due.history_version, claimed_by)
            try:
                with suppress(ChatError):  # The client answered after all, or somebody was faster.
                    state = await self._ports.apply(due.chat_id, command)
                    if slot is not None:
                        self.start(Claimed(state, due.owner), slot)
            finally:
                if slot is not None:
                    self._give_back_if_reserved(slot)

    async def _take(self) -> None:
        """Claim as many chats as there are slots for, and run them.

        What came before may have waited for an outage to end, so nothing is taken for granted.
        """
        if self._is_draining or not self.may_act():
            return
        wanted = min(self._limits.acquire_batch_max, self._slots.free)
        slots = [slot for _ in range(wanted) if (slot := self._slots.reserve()) is not None]
        if not slots:
            return
        self._was_refused = False
        limits = SweepLimits(
            len(slots),
            self._limits.running_per_user_max,
            may_take_suspect=not self._runners.has_suspect(),
            may_take_orphans=self._may_judge_others(),
        )
        try:
            taken = await self._ports.claims.sweep(self.worker_id, limits)
            for claimed, slot in zip(taken, slots, strict=False):
                if claimed.state.takeovers:
                    chat = {"chat_id": claimed.state.chat_id, "takeovers": claimed.state.takeovers}
                    logger.warning("a chat was taken over from an owner that died", extra=chat)
                self._ports.moved(claimed.state)
                self.start(claimed, slot)
        finally:
            for slot in slots:
                self._give_back_if_reserved(slot)
        if len(taken) == len(slots) and self._slots.free:
            self.poke()

    def _give_back_if_reserved(self, slot: Slot) -> None:
        """Give back what no runner uses; unlike a freed slot this is no news to anybody."""
        if self._slots.is_reserved(slot):
            self._slots.give_back(slot)

    async def _within(self, limit_s: float, work: Awaitable[object]) -> None:
        """Wait for `work`, but not longer than `limit_s`."""
        async with asyncio.TaskGroup() as group:
            working = group.create_task(_logged("settle", work))
            limit = group.create_task(self._clock.sleep(limit_s))
            await asyncio.wait((working, limit), return_when=asyncio.FIRST_COMPLETED)
            limit.cancel()
            if not working.done():
                logger.warning("a drain went on without waiting any longer")
                working.cancel()


async def _logged(what: str, work: Awaitable[object]) -> None:
    """Go on after a failure: a drain does what it can, and the lease does the rest."""
    try:
        await work
    except Exception:
        logger.exception("could not %s", what)
