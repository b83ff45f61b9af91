"""What is told of the ends of turns to other slices of the process."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from chatd.chats.domain.chat import ChatState
from chatd.chats.domain.commands import Command, FailTurn
from chatd.primitives.domain.ids import ChatId
from chatd.turns.domain.turn import TurnEnded

T = TypeVar("T")

Apply = Callable[[ChatId, Command], Awaitable[ChatState]]


class TurnObserver(Protocol):
    """Is told what became of turns."""

    def ended(self, ended: TurnEnded) -> None:
        """Called when a turn ended in this process, after its commit."""
        ...

    def failed(self, state: ChatState) -> None:
        """Called with states that a worker wrote; one is an error if a runner or processes died."""
        ...

    def labelled(self, chat_id: ChatId, history_version: int, label: str) -> None:
        """Called when a model wrote the label of a turn."""
        ...


def told_to(*observers: Callable[[T], None]) -> Callable[[T], None]:
    """Return a function that calls all of them in this order."""

    def tell(value: T) -> None:
        for observer in observers:
            observer(value)

    return tell


def with_failures_told(apply: Apply, observer: TurnObserver) -> Apply:
    """Return a function that applies commands of a worker, and tells which turns it failed."""

    async def applied(chat_id: ChatId, command: Command) -> ChatState:
        state = await apply(chat_id, command)
        if isinstance(command, FailTurn):
            observer.failed(state)
        return state

    return applied
