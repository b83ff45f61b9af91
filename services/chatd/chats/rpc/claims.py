"""Claim on write: a slot is reserved before a command, and used or released after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from chatd.chats.domain.chat import ChatState, Claimed, Slot
from chatd.primitives.domain.ids import Owner, OwnerId, WorkerId


class Claims(Protocol):
    """The part of this process's worker that commands use."""

    @property
    def worker_id(self) -> WorkerId:
        """The id of the worker that claims."""
        ...

    def reserve(self, owner_id: OwnerId | None = None) -> Slot | None:
        """Return a slot for a claim of this user, or None: then the chat waits for a sweep."""
        ...

    def start(self, claimed: Claimed, slot: Slot) -> None:
        """Run a claimed chat in a slot."""
        ...

    def release_slot(self, slot: Slot) -> None:
        """Release a slot without a claim."""
        ...


@dataclass(slots=True)
class Reservation:
    """A slot, if there was one, for one command of one owner."""

    claims: Claims
    owner: Owner
    slot: Slot | None

    @property
    def claimed_by(self) -> WorkerId | None:
        """The worker that may claim by the command; None without a slot."""
        return None if self.slot is None else self.claims.worker_id

    def start(self, state: ChatState) -> None:
        """Run the chat if the command claimed it."""
        if self.slot is not None and self._is_claimed(state):
            slot, self.slot = self.slot, None
            self.claims.start(Claimed(state, self.owner), slot)

    def _is_claimed(self, state: ChatState) -> bool:
        """Return whether the command claimed the chat, as opposed to finding it owned already.

        Every command that claims adds history in the same write, also one that stops a chat whose
        calls wait; one that finds a running turn only queues or interrupts.
        """
        return (
            state.worker_id == self.claims.worker_id
            and state.history_version == state.snapshot_version
        )


@contextmanager
def reserved(claims: Claims, owner: Owner) -> Iterator[Reservation]:
    """Reserve a slot for one command; release it if no chat was started in it."""
    reservation = Reservation(claims, owner, claims.reserve(owner.id))
    try:
        yield reservation
    finally:
        if reservation.slot is not None:
            claims.release_slot(reservation.slot)
