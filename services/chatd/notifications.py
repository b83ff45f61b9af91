"""Who is told what happens to chats, in this process and in the others."""

from collections.abc import Callable
from datetime import datetime

from chatd.bus_handlers import CHAT_TOPIC, METADATA_TOPIC, SWEEP_TOPIC
from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.store.applying import Appended
from chatd.primitives.domain.ids import ChatId
from chatd.workers.domain import is_ownerless
from parley.bus import Bus, Notice


class ChatNotifier:
    """Passes on what the store wrote.

    The store is opened before anybody who wants to hear of it, so those are connected when all of
    them are there; until then nothing happens to a chat.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._state_changed: tuple[Callable[[ChatState], None], ...] = ()
        self._appended: tuple[Appended, ...] = ()
        self._metadata_changed: tuple[Callable[[ChatId], None], ...] = ()

    def connect(
        self,
        *,
        state_changed: tuple[Callable[[ChatState], None], ...],
        appended: tuple[Appended, ...],
        metadata_changed: tuple[Callable[[ChatId], None], ...],
    ) -> None:
        """Have these told from now on, in this order."""
        self._state_changed, self._appended, self._metadata_changed = (
            state_changed,
            appended,
            metadata_changed,
        )

    def state_changed(self, state: ChatState) -> None:
        """Tell that a chat has a new state."""
        for tell in self._state_changed:
            tell(state)
        self._bus.publish(Notice(CHAT_TOPIC, state.chat_id, state.snapshot_version))
        if is_ownerless(state):
            self.request_sweep()

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

    def metadata_changed(self, chat_id: ChatId, snapshot_version: int = 0) -> None:
        """Tell that a chat looks different, though its execution did not move."""
        for tell in self._metadata_changed:
            tell(chat_id)
        self._bus.publish(Notice(METADATA_TOPIC, chat_id, snapshot_version))

    def request_sweep(self) -> None:
        """Tell every process that there may be something to sweep."""
        self._bus.publish(Notice(SWEEP_TOPIC, SWEEP_TOPIC, 0))
