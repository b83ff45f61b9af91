"""Who is told what happens to chats, in this process and in the others."""

from collections.abc import Callable
from datetime import datetime

from chatd.bus_handlers import CHAT_TOPIC, NOTED_TOPIC, SWEEP_TOPIC
from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.store.applying import Appended
from chatd.primitives.domain.ids import ChatId
from chatd.workers.domain import is_ownerless
from parley.bus import Bus, Notice


class Switchboard:
    """Passes on what the store wrote.

    The store is opened before anybody who wants to hear of it, so those are connected when all of
    them are there; until then nothing happens to a chat.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._moved: tuple[Callable[[ChatState], None], ...] = ()
        self._appended: tuple[Appended, ...] = ()
        self._noted: tuple[Callable[[ChatId], None], ...] = ()

    def connect(
        self,
        *,
        moved: tuple[Callable[[ChatState], None], ...],
        appended: tuple[Appended, ...],
        noted: tuple[Callable[[ChatId], None], ...],
    ) -> None:
        """Have these told from now on, in this order."""
        self._moved, self._appended, self._noted = moved, appended, noted

    def moved(self, state: ChatState) -> None:
        """Tell that a chat has a new state."""
        for tell in self._moved:
            tell(state)
        self._bus.publish(Notice(CHAT_TOPIC, state.chat_id, state.snapshot_version))
        if is_ownerless(state):
            self.offer()

    def appended(
        self,
        before: ChatState,
        after: ChatState,
        messages: tuple[NewMessage, ...],
        at: datetime | None,
    ) -> None:
        """Tell which messages a chat has more."""
        for tell in self._appended:
            tell(before, after, messages, at)

    def noted(self, chat_id: ChatId, snapshot_version: int = 0) -> None:
        """Tell that a chat looks different, though its execution did not move."""
        for tell in self._noted:
            tell(chat_id)
        self._bus.publish(Notice(NOTED_TOPIC, chat_id, snapshot_version))

    def offer(self) -> None:
        """Tell every process that there may be something to sweep."""
        self._bus.publish(Notice(SWEEP_TOPIC, SWEEP_TOPIC, 0))
