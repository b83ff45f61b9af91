"""What the engine needs from the world, as small as it can be said."""

from typing import Protocol

from chatd.chats.domain.chat import ChatState, Message
from chatd.chats.domain.commands import Command
from chatd.chats.domain.pieces import Piece
from chatd.content.domain.tools import StoredExecution
from chatd.models.domain.choice import ModelChoice
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId, MessageId, Owner
from chatd.spend.domain.ledger import CallPurpose
from chatd.turns.domain.turn import TurnSetup


class Chats(Protocol):
    """Chats that last."""

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Decide and write; return the state that was written."""
        ...

    async def state(self, chat_id: ChatId) -> ChatState:
        """Return the present state of a chat's execution."""
        ...

    async def history(self, chat_id: ChatId, after_revision: int = 0) -> tuple[Message, ...]:
        """Return the live messages in order, or all that changed after a revision.

        What changed includes messages that were deleted meanwhile, marked as such: whoever kept
        the older ones has to learn of it.
        """
        ...

    async def executions(
        self, chat_id: ChatId, message_id: MessageId
    ) -> tuple[StoredExecution, ...]:
        """Return the calls of an assistant's message that were dispatched."""
        ...


class Setups(Protocol):
    """What turns run with."""

    async def prepare(
        self, chat_id: ChatId, owner: Owner, choice: ModelChoice | None = None
    ) -> TurnSetup:
        """Return what the next turn of a chat runs with.

        Args:
            chat_id: The chat.
            owner: Whose credentials it spends.
            choice: What the message that starts it asks for, None when that is not known.

        Raises:
            ModelError: no model can be used, for example because its key is missing.
        """
        ...


class Partials(Protocol):
    """What was shown of answers that were never finished."""

    async def load(
        self, chat_id: ChatId, history_version: int, generation_attempt: int
    ) -> tuple[Piece, ...]:
        """Return the pieces of one episode in order."""
        ...


class UtilityModels(Protocol):
    """Models that do small things for a chat beside its own."""

    async def for_purpose(
        self, chat_id: ChatId, owner: Owner, purpose: CallPurpose
    ) -> ModelProfile | None:
        """Return the model that is set for titles, labels or summaries; None for the chat's own.

        Raises:
            ModelError: one is set and cannot be used; then nothing is generated.
        """
        ...


class FixedUtilityModels:
    """Gives every small generation the same model, or leaves it to the chat's own."""

    def __init__(self, model: ModelProfile | None = None) -> None:
        self._model = model

    async def for_purpose(
        self, chat_id: ChatId, owner: Owner, purpose: CallPurpose
    ) -> ModelProfile | None:
        """Return what was given."""
        return self._model
