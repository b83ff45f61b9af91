"""What turns and requests need of spending."""

from typing import Protocol

from chatd.content.domain.messages import TurnError
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.spend.domain.ledger import LedgerEntry


class Ledger(Protocol):
    """Where calls of models are billed."""

    async def enter(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        """Enter a call, unless it is there already."""
        ...


class Spending(Protocol):
    """What may still be spent."""

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        """Return why no model may be called for a chat now, None if one may."""
        ...


class Unlimited:
    """Lets everybody spend what they want."""

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        """Refuse nothing."""
        return None

    async def admit(self, owner_id: OwnerId, group_ids: tuple[str, ...]) -> None:
        """Refuse nobody."""

    async def remember_groups(self, chat_id: ChatId, group_ids: tuple[str, ...]) -> None:
        """Remember nothing: no limit depends on it."""

    async def depend_on_groups(self) -> bool:
        """Nothing depends on anything."""
        return False
