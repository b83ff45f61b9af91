"""The worker of this process: it holds a lease, claims chats, runs them and hands them over.

Four loops. One renews the lease on a connection of its own. One compares the chats of each renewal
with the runners of this process. One requests sweeps periodically, and one sweeps: on that tick,
when a slot is freed that a chat waits for, and on request. Claims on write bypass the sweep: the
writer reserves a slot first and starts the chat in it, or releases it.

Slots keep a claim from being lost: a drain waits until none is reserved before it reads the chats
that this worker owns, so a claim that is under way is either started or found and released.
"""

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from contextvars import Context

from chatd.chats.domain.chat import ChatState, Claimed, Slot
from chatd.chats.domain.commands import Release
from chatd.chats.domain.transitions import fence_of
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, OwnerId, WorkerId
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.worker.ports import WorkerLimits, WorkerPorts
from chatd.turns.worker.reconciliation import Reconciler
from chatd.turns.worker.runners import SlotPool
from chatd.turns.worker.sweeps import Sweeper
from chatd.workers.domain import is_ownerless, is_suspect
from chatd.workers.engine.lease_keeper import LeaseKeeper
from chatd.workers.engine.leases import LeaseTiming
from parley.tasks import BackgroundTasks, Overtaken, run_unless

logger = logging.getLogger(__name__)

RELEASE_ROUNDS_MAX = 3


class Worker:
    """Owns chats for as long as `run` runs; `drain` hands them over and ends it.

    Attributes:
        has_ended: Whether this worker was declared dead; then it has stopped all its runners.
    """

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
        self.has_ended = False
        self._ports = ports
        self._limits = limits
        self._keeper = LeaseKeeper(
            worker_id,
            address,
            ports.leases,
            clock=ports.clock,
            timing=timing or LeaseTiming(),
            named=lambda named: self._reconciler.note(named),
            on_ended=self._end,
            is_quarantine=limits.is_quarantine,
        )
        self._slot_pool = SlotPool(worker_id, ports, limits, self._keeper)
        self._reconciler = Reconciler(self._slot_pool, ports)
        self._sweeper = Sweeper(self._slot_pool, self._keeper, ports, limits)
        self._is_drained = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Whether no chat runs here."""
        return not self._slot_pool.runners.running

    def may_act(self) -> bool:
        """Return whether a new effect may start: not if the lease is close to its expiry."""
        return self._keeper.may_act()

    def reserve(self, owner_id: OwnerId | None = None) -> Slot | None:
        """Return a slot for a claim on write, or None: then the chat waits for a sweep.

        With `owner_id` the user's limit applies too.
        """
        return None if self._limits.is_quarantine else self._slot_pool.reserve(owner_id)

    def release_slot(self, slot: Slot) -> None:
        """Release a slot; request a sweep if a reservation was refused or all slots were used."""
        self._slot_pool.release(slot)

    def start(self, claimed: Claimed, slot: Slot, context: Context | None = None) -> None:
        """Run a claimed chat in `slot`; if the state is no claim, only release the slot.

        So a writer may pass any state that its command led to.
        """
        self._slot_pool.runners.start(claimed, slot, context)

    def mailbox(self, chat_id: ChatId) -> Mailbox | None:
        """Return the mailbox of a chat's runner, if it is here."""
        running = self._slot_pool.runners.get(chat_id)
        return None if running is None else running.mailbox

    def deliver(self, state: ChatState) -> None:
        """Deliver a state of any chat, from a commit of this process or from a read."""
        self._slot_pool.runners.deliver(state)
        if is_ownerless(state):
            if is_suspect(state):
                self._sweeper.note_suspect()
            self.poke()
        is_here = state.worker_id == self.worker_id
        if self._limits.is_quarantine and is_here and not is_suspect(state):
            self._slot_pool.runners.hand_over(state)

    def limit_running_per_user(self, chats_max: int) -> None:
        """Change how many chats of one user run at once; those that run go on."""
        if chats_max != self._slot_pool.running_per_user_max:
            self._slot_pool.running_per_user_max = chats_max
            self.poke()

    def poke(self) -> None:
        """Sweep now: a chat may wait for an owner."""
        self._slot_pool.sweep_requested.set()

    async def until_registered(self) -> None:
        """Wait until this worker may claim."""
        await self._keeper.until_registered()

    async def run(self) -> None:
        """Hold the lease and run chats until drained; if cancelled, the lease expires."""
        try:
            async with BackgroundTasks(self._ports.supervision) as tasks:
                self._slot_pool.runners.open(tasks)
                tasks.keep("lease.renew", self._keeper.run)
                tasks.keep("lease.reconcile", self._reconciler.run)
                tasks.keep("sweeps.time", self._sweeper.tick)
                tasks.keep("sweeps.run", self._sweeper.run)
                await self._is_drained.wait()
        finally:
            self._keeper.end()

    async def drain(self, applies: Awaitable[object] | None = None) -> None:
        """Claim nothing more, stop the runners, hand every chat over and end the lease.

        Args:
            applies: Writes of this process that are under way and are awaited first.
        """
        if self._slot_pool.is_draining:
            await self._is_drained.wait()
            return
        self._slot_pool.is_draining = True
        self._keeper.begin_end()
        try:
            await _logged("begin to drain", self._ports.leases.begin_drain(self.worker_id))
            if applies is not None:
                await self._within(self._limits.claims_settle_max_s, applies)
            settled = self._slot_pool.slots.until_unreserved()
            await self._within(self._limits.claims_settle_max_s, settled)
            self._slot_pool.runners.close()
            await self._within(
                self._limits.runners_stop_max_s, self._slot_pool.runners.until_idle()
            )
            await _logged("hand chats over", self._release_owned())
            await _logged("end the lease", self._ports.leases.end(self.worker_id))
        finally:
            self._keeper.end()
            self._is_drained.set()
        self._ports.request_sweep()

    def _end(self) -> None:
        """Stop all work: the chats belong to others."""
        self.has_ended = True
        self._slot_pool.runners.close()
        self._ports.on_ended()

    async def _release_owned(self) -> None:
        """Release the chats that name this worker, also those claimed without a runner."""
        for _ in range(RELEASE_ROUNDS_MAX):
            owned = await self._ports.claims.owned(self.worker_id)
            if not owned:
                return
            for state in owned:
                with suppress(ChatError):  # It has changed; the next round reads it again.
                    await self._ports.apply(state.chat_id, Release(fence_of(state)))

    async def _within(self, limit_s: float, work: Awaitable[object]) -> None:
        """Wait for `work`, but not longer than `limit_s`."""
        try:
            await run_unless(_logged("settle", work), self._ports.clock.sleep(limit_s))
        except Overtaken:
            logger.warning("a drain went on without waiting any longer")


async def _logged(what: str, work: Awaitable[object]) -> None:
    """Log a failure and continue: the remaining drain steps still run, then the lease expires."""
    try:
        await work
    except Exception:
        logger.exception("could not %s", what)
