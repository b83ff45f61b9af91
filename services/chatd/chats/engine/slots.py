"""The places in which one process runs chats."""

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The right to run one chat; it is given back once."""


class Slots:
    """Counts what is reserved for a claim and what is used by a runner."""

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
        """Return a slot for a claim that is about to be made, or None when all are taken."""
        if self.free <= 0:
            return None
        slot = Slot()
        self._reserved.add(slot)
        self._is_unreserved.clear()
        return slot

    def is_reserved(self, slot: Slot) -> bool:
        """Return whether a slot still waits for its claim."""
        return slot in self._reserved

    def use(self, slot: Slot) -> None:
        """Turn a reservation into the place of a runner."""
        self._reserved.remove(slot)
        self._used.add(slot)
        self._note_reservations()

    def release(self, slot: Slot) -> None:
        """Free a slot, reserved or used; doing so again changes nothing."""
        self._reserved.discard(slot)
        self._used.discard(slot)
        self._note_reservations()

    async def until_unreserved(self) -> None:
        """Wait until every claim that was being made has its runner or gave up."""
        await self._is_unreserved.wait()

    def _note_reservations(self) -> None:
        if not self._reserved:
            self._is_unreserved.set()
