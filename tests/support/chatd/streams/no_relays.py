"""Relays of tests with a single process."""

from chatd.chats.domain.chat import ChatState
from chatd.primitives.domain.ids import ChatId


class NoRelays:
    """Relays of a deployment with a single process."""

    def target(self, state: ChatState) -> None:
        """Do nothing."""

    def drop(self, chat_id: ChatId) -> None:
        """Do nothing."""
