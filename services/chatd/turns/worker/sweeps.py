"""Sweeps: find chats without an owner, periodically and on request."""

import logging
from contextlib import suppress

from chatd.chats.domain.chat import Claimed
from chatd.chats.domain.commands import ExpireAction
from chatd.primitives.domain.errors import ChatError
from chatd.turns.worker.ports import WorkerLimits, WorkerPorts
from chatd.turns.worker.runners import SlotPool
from chatd.workers.domain import SweepLimits
from chatd.workers.engine.lease_keeper import LeaseKeeper
from parley.postgres import DatabaseUnavailable

logger = logging.getLogger(__name__)


class Sweeper:
    """Claims waiting chats, parks crash loops, and cancels overdue client actions."""

    def __init__(
        self, slot_pool: SlotPool, keeper: LeaseKeeper, ports: WorkerPorts, limits: WorkerLimits
    ) -> None:
        self._slot_pool = slot_pool
        self._keeper = keeper
        self._ports = ports
        self._limits = limits
        self._is_round_due = False
        self._is_suspect_seen = False

    def note_suspect(self) -> None:
        """Look at the next sweep whether suspects have a worker that takes them."""
        self._is_suspect_seen = True

    async def tick(self) -> None:
        """Request a sweep periodically until cancelled."""
        while True:
            every_s = self._limits.sweep_every_s * self._ports.rng.uniform(0.75, 1.25)
            await self._ports.clock.sleep(every_s)
            self._is_round_due = self._is_suspect_seen = True
            self._slot_pool.sweep_requested.set()

    async def run(self) -> None:
        """Sweep when requested, until cancelled."""
        while True:
            await self._slot_pool.sweep_requested.wait()
            self._slot_pool.sweep_requested.clear()
            try:
                await self._sweep()
            except DatabaseUnavailable as outage:
                logger.warning("no sweep: %s", outage)
                self._keeper.note_outage()
            except Exception:
                logger.exception("a sweep failed")

    async def _sweep(self) -> None:
        if not self._slot_pool.may_claim():
            return
        if not self._limits.is_quarantine:
            await self._serve_all()
        await self._claim_waiting()

    async def _serve_all(self) -> None:
        """Do what is needed for chats that this worker does not run itself."""
        if self._is_suspect_seen:
            self._is_suspect_seen = False
            if await self._ports.claims.needs_quarantine():
                self._ports.request_quarantine()
        if self._is_round_due and self._keeper.may_take_over():
            self._is_round_due = False
            await self._park()
            await self._expire_actions()

    async def _park(self) -> None:
        batch_max = self._limits.acquire_batch_max
        for state in await self._ports.claims.park(self._slot_pool.worker_id, batch_max):
            logger.error("a chat was parked", extra={"chat_id": state.chat_id})
            self._ports.state_changed(state)

    async def _expire_actions(self) -> None:
        for due in await self._ports.claims.due_actions(self._limits.acquire_batch_max):
            slot = self._slot_pool.reserve(due.owner.id)
            claimed_by = None if slot is None else self._slot_pool.worker_id
            command = ExpireAction(due.action_id, claimed_by)
            try:
                with suppress(ChatError):  # Answered meanwhile, or by another process.
                    state = await self._ports.apply(due.chat_id, command)
                    if slot is not None:
                        self._slot_pool.runners.start(Claimed(state, due.owner), slot)
            finally:
                if slot is not None:
                    self._slot_pool.release_if_reserved(slot)

    async def _claim_waiting(self) -> None:
        """Claim as many chats as there are free slots, and run them.

        The calls before may have waited for an outage to end, so the lease is checked again.
        """
        if not self._slot_pool.may_claim():
            return
        slots = self._slot_pool.reserve_many(self._limits.acquire_batch_max)
        if not slots:
            return
        limits = SweepLimits(
            len(slots),
            self._slot_pool.running_per_user_max,
            is_quarantine=self._limits.is_quarantine,
            may_take_orphans=self._keeper.may_take_over(),
        )
        try:
            taken = await self._ports.claims.sweep(self._slot_pool.worker_id, limits)
            for claimed, slot in zip(taken, slots, strict=False):
                if claimed.state.takeovers:
                    chat = {"chat_id": claimed.state.chat_id, "takeovers": claimed.state.takeovers}
                    logger.warning("a chat was taken over from an owner that died", extra=chat)
                self._ports.state_changed(claimed.state)
                self._slot_pool.runners.start(claimed, slot)
        finally:
            for slot in slots:
                self._slot_pool.release_if_reserved(slot)
        self._slot_pool.note_load(
            await self._ports.claims.user_load(self._slot_pool.running_per_user_max)
        )
        if len(taken) == len(slots) and self._slot_pool.slots.free:
            self._slot_pool.sweep_requested.set()
