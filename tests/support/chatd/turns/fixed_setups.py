"""Setups of turns and models of side calls that are always the same."""

from chatd.models.domain.profile import ModelChoice, ModelProfile
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.spend.domain.ledger import CallPurpose
from chatd.turns.domain.turn import TurnSetup


class FixedUtilityModels:
    """Returns the same model for every purpose, or None for the chat's own."""

    def __init__(self, model: ModelProfile | None = None) -> None:
        self._model = model

    async def for_purpose(
        self, chat_id: ChatId, owner: Owner, purpose: CallPurpose
    ) -> ModelProfile | None:
        """Return the configured model."""
        return self._model


class FixedSetups:
    """Returns the same setup for every turn, until a test changes it."""

    def __init__(self, setup: TurnSetup) -> None:
        self.setup = setup

    async def prepare(
        self, chat_id: str, owner: Owner, choice: ModelChoice | None = None
    ) -> TurnSetup:
        """Return the setup."""
        return self.setup
