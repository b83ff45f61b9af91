"""Calls of models that are under way, as they are stored in case their process dies."""

from dataclasses import dataclass
from typing import Protocol

from chatd.primitives.domain.ids import ChatId, Fence, OwnerId
from chatd.spend.domain.ledger import LedgerEntry


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call, with the estimate that is charged if nothing more is heard of it."""

    entry: LedgerEntry
    owner_id: OwnerId


class StoredOpenCalls(Protocol):
    """Where calls under way are stored."""

    async def write(self, changed: tuple[OpenCall, ...], ended: tuple[OpenCall, ...]) -> None:
        """Store calls of this process as they are now, and remove those that ended."""
        ...

    async def charge_abandoned(self, calls_max: int) -> int:
        """Enter calls of dead processes into the ledger; return how many there were."""
        ...


class InheritedCalls(Protocol):
    """What a dead process left of its calls."""

    async def find(self, chat_id: ChatId, fence: Fence) -> OpenCall | None:
        """Return the call of an episode, None if there was none or none is known."""
        ...


class NoInheritedCalls:
    """Knows of no calls."""

    async def find(self, chat_id: ChatId, fence: Fence) -> OpenCall | None:
        """Return nothing."""
        return None
