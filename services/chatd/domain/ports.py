"""What the engine needs from the world, as small as it can be said."""

from collections.abc import Collection, Mapping
from typing import Protocol

from chatd.domain.chat import ChatId, ChatState, Message, MessageId, Owner, OwnerId, TurnError
from chatd.domain.choice import ModelChoice
from chatd.domain.commands import Command
from chatd.domain.ledger import CallPurpose, LedgerEntry
from chatd.domain.model import FileData, ModelRequest, TakeEvent
from chatd.domain.pieces import Piece
from chatd.domain.tools import Execution, Found, Outcome, StoredExecution, ToolSpec
from chatd.domain.turn import ModelProfile, TurnSetup


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


class LanguageModel(Protocol):
    """A model that answers."""

    async def answer(self, request: ModelRequest, take: TakeEvent) -> None:
        """Ask, and give what comes back to `take` as it comes, `Finished` last.

        What `take` raises ends the call and comes out here.

        Raises:
            ModelError: the call failed, at any place of the answer.
        """
        ...


class Tools(Protocol):
    """Tools that somebody executes."""

    async def offer(self, chat_id: ChatId, owner: Owner) -> tuple[ToolSpec, ...]:
        """Return the tools a chat of `owner` may use now."""
        ...

    async def execute(self, execution: Execution) -> Outcome:
        """Have a dispatched call executed, at most once, and return what became of it.

        A call that started already is attached to. Cancelling the wait leaves the call alone.

        Raises:
            ExecutorUnreachable: whether the call arrived is not known; `find` may tell later.
        """
        ...

    async def find(self, execution: Execution) -> Found:
        """Return what the executor's journal knows of a dispatched call.

        Raises:
            ExecutorUnreachable: nobody could be asked.
        """
        ...

    async def cancel(self, execution: Execution) -> None:
        """Have a call stopped; one that never arrived must not start any more.

        Raises:
            ExecutorUnreachable: nobody could be told.
        """
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


class Files(Protocol):
    """Files that messages refer to."""

    async def load(self, file_ids: Collection[str], owner_id: OwnerId) -> Mapping[str, FileData]:
        """Return the files of an owner by their ids; one that is gone is not among them."""
        ...


class NoFiles:
    """Has no files."""

    async def load(self, file_ids: Collection[str], owner_id: OwnerId) -> Mapping[str, FileData]:
        """Return nothing."""
        return {}


class Partials(Protocol):
    """What was shown of answers that were never finished."""

    async def load(
        self, chat_id: ChatId, history_version: int, generation_attempt: int
    ) -> tuple[Piece, ...]:
        """Return the pieces of one episode in order."""
        ...


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
