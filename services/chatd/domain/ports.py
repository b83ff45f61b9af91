"""What the engine needs from the world, as small as it can be said."""

from collections.abc import AsyncIterator
from typing import Protocol

from chatd.domain.chat import ChatId, ChatState, Message, Owner
from chatd.domain.commands import Command
from chatd.domain.model import ModelEvent, ModelRequest
from chatd.domain.tools import Execution, Outcome, ToolSpec


class Chats(Protocol):
    """Chats that last."""

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Decide and write; return the state that was written."""
        ...

    async def state(self, chat_id: ChatId) -> ChatState:
        """Return the present state of a chat's execution."""
        ...

    async def history(self, chat_id: ChatId) -> tuple[Message, ...]:
        """Return the messages in order."""
        ...


class LanguageModel(Protocol):
    """A model that answers."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask and yield what comes back, ending with `Finished`."""
        ...


class Tools(Protocol):
    """Tools that somebody executes."""

    async def offer(self, chat_id: ChatId, owner: Owner) -> tuple[ToolSpec, ...]:
        """Return the tools a chat of `owner` may use now."""
        ...

    async def execute(self, execution: Execution) -> Outcome:
        """Have a dispatched call executed, at most once, and return what became of it."""
        ...
