"""The slots in which one process runs chats."""

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The right to run one chat; it is released once."""


class Slots:
    """Counts slots reserved for a claim and slots used by a runner."""

    def __init__(self, slots_max: int) -> None:
        self._slots_max = slots_max
        self._reserved: set[Slot] = set()
        self._used: set[Slot] = set()
        self._is_unreserved = asyncio.Event()
        self._is_unreserved.set()

    @property
    def free(self) -> int:
        """How many more can be reserved."""
        return self._slots_max - len(self._reserved) - len(self._used)

    def reserve(self) -> Slot | None:
        """Return a slot for a claim that is about to be made, or None when all are in use."""
        if self.free <= 0:
            return None
        slot = Slot()
        self._reserved.add(slot)
        self._is_unreserved.clear()
        return slot

    def is_reserved(self, slot: Slot) -> bool:
        """Return whether a slot is still reserved for its claim."""
        return slot in self._reserved

    def use(self, slot: Slot) -> None:
        """Turn a reservation into a slot used by a runner."""
        self._reserved.remove(slot)
        self._used.add(slot)
        self._note_reservations()

    def release(self, slot: Slot) -> None:
        """Release a slot, reserved or used; idempotent."""
        self._reserved.discard(slot)
        self._used.discard(slot)
        self._note_reservations()

    async def until_unreserved(self) -> None:
        """Wait until every claim under way has its runner or has released its slot."""
        await self._is_unreserved.wait()

    def _note_reservations(self) -> None:
        if not self._reserved:
            self._is_unreserved.set()
