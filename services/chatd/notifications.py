"""Publishes changes of chats to callbacks in this process and to other processes over the bus."""

from collections.abc import Callable
from datetime import datetime

from chatd.bus_handlers import CHAT_TOPIC, METADATA_TOPIC, SWEEP_TOPIC
from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.store.applying import Appended
from chatd.primitives.domain.ids import ChatId
from chatd.workers.domain import is_ownerless
from parley.bus import Bus, Notice


class ChatNotifier:
    """Passes changes that the store wrote to callbacks and to the bus.

    The store is opened before the components that subscribe, so the callbacks are connected once
    all of them exist; no chat changes before that.
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
        """Set the callbacks; they are called in this order."""
        self._state_changed, self._appended, self._metadata_changed = (
            state_changed,
            appended,
            metadata_changed,
        )

    def state_changed(self, state: ChatState) -> None:
        """Publish the new state of a chat."""
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
        """Pass the messages that were appended to a chat to the callbacks."""
        for tell in self._appended:
            tell(before, after, messages, at)

    def metadata_changed(self, chat_id: ChatId, snapshot_version: int = 0) -> None:
        """Publish that a chat's metadata changed without a change of its execution state."""
        for tell in self._metadata_changed:
            tell(chat_id)
        self._bus.publish(Notice(METADATA_TOPIC, chat_id, snapshot_version))

    def request_sweep(self) -> None:
        """Publish to all processes that chats may be waiting for an owner."""
        self._bus.publish(Notice(SWEEP_TOPIC, SWEEP_TOPIC, 0))
