"""The slots of a worker: reserved for claims, and used by the claimed chats."""

import asyncio
from contextvars import Context

from chatd.chats.domain.chat import Claimed
from chatd.chats.engine.slots import Slot, Slots
from chatd.primitives.domain.ids import OwnerId, WorkerId
from chatd.turns.worker.ports import WorkerLimits, WorkerPorts
from chatd.turns.worker.runners import Runners
from chatd.workers.engine.lease_keeper import LeaseKeeper


class SlotPool:
    """Reserves slots for claims, while the lease holds and the worker does not drain.

    Attributes:
        worker_id: The worker that claims the chats.
        slots: All slots.
        runners: The runners in them.
        sweep_requested: Set to request a sweep.
        is_draining: Whether no more chats are claimed.
    """

    def __init__(
        self, worker_id: WorkerId, ports: WorkerPorts, limits: WorkerLimits, keeper: LeaseKeeper
    ) -> None:
        self.worker_id = worker_id
        self.slots = Slots(limits.slots_max)
        self.runners = Runners(
            worker_id,
            run_chat=ports.run_chat,
            apply=ports.apply,
            claims=ports.claims,
            slots=self.slots,
            release=self.release,
        )
        self.sweep_requested = asyncio.Event()
        self.is_draining = False
        self._keeper = keeper
        self._running_per_user_max = limits.running_per_user_max
        self._was_refused = False

    def may_claim(self) -> bool:
        """Return whether a chat may be claimed now."""
        return not self.is_draining and self._keeper.may_act()

    def reserve(self, owner_id: OwnerId | None = None) -> Slot | None:
        """Return a slot for a claim, or None: then the chat waits for a sweep.

        With `owner_id` the user's limit applies too, as far as it is used in this process.
        """
        if not self.may_claim():
            return None
        slot = None
        users = 0 if owner_id is None else self.runners.count_of(owner_id)
        if users < self._running_per_user_max:
            slot = self.slots.reserve()
        self._was_refused |= slot is None
        return slot

    def reserve_many(self, wanted: int) -> list[Slot]:
        """Return as many of `wanted` slots as are free, for a sweep over all users."""
        count = min(wanted, self.slots.free)
        slots = [slot for _ in range(count) if (slot := self.slots.reserve()) is not None]
        if slots:
            self._was_refused = False
        return slots

    def release(self, slot: Slot) -> None:
        """Release a slot; request a sweep if a reservation was refused or all slots were used."""
        is_awaited = self._was_refused or self.slots.free == 0
        self.slots.release(slot)
        if is_awaited:
            self.sweep_requested.set()

    def release_if_reserved(self, slot: Slot) -> None:
        """Release a slot that no runner uses; unlike a freed slot this requests no sweep."""
        if self.slots.is_reserved(slot):
            self.slots.release(slot)

    def start(self, claimed: Claimed, slot: Slot, context: Context | None = None) -> None:
        """Run a claimed chat in `slot`; if the state is no claim, only release the slot.

        So a writer may pass any state that its command led to.
        """
        self.runners.start(claimed, slot, context)
