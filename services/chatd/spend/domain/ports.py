"""Ports of the slice `spend` that turns and requests use."""

from typing import Protocol

from chatd.content.domain.messages import TurnError
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.spend.domain.ledger import LedgerEntry


class Ledger(Protocol):
    """The ledger of model calls."""

    async def enter(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        """Enter a call, unless it is already there."""
        ...


class Spending(Protocol):
    """Checks spend limits."""

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        """Return why no model may be called for a chat now, None if one may."""
        ...


class Unlimited:
    """Spending without limits."""

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        """Return None."""
        return None

    async def admit(self, owner_id: OwnerId, group_ids: tuple[str, ...]) -> None:
        """Admit every user."""

    async def remember_groups(self, chat_id: ChatId, group_ids: tuple[str, ...]) -> None:
        """Do nothing: no limit depends on groups."""

    async def depend_on_groups(self) -> bool:
        """Return False."""
        return False
