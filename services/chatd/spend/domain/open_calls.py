"""Model calls in progress, stored in case their process dies."""

from dataclasses import dataclass
from typing import Protocol

from chatd.primitives.domain.ids import ChatId, Fence, OwnerId
from chatd.spend.domain.ledger import LedgerEntry


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call, with the estimate that is charged if its process dies."""

    entry: LedgerEntry
    owner_id: OwnerId


class StoredOpenCalls(Protocol):
    """Stores the calls in progress."""

    async def write(self, changed: tuple[OpenCall, ...], ended: tuple[OpenCall, ...]) -> None:
        """Store the current state of this process's calls, and remove those that ended."""
        ...

    async def charge_abandoned(self, calls_max: int) -> int:
        """Enter calls of dead processes into the ledger; return their number."""
        ...


class InheritedCalls(Protocol):
    """The calls that a dead process left."""

    async def find(self, chat_id: ChatId, fence: Fence) -> OpenCall | None:
        """Return the call of an episode, None if there is none."""
        ...


class NoInheritedCalls:
    """Returns no calls."""

    async def find(self, chat_id: ChatId, fence: Fence) -> OpenCall | None:
        """Return None."""
        return None
