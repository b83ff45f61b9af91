"""Ports between the streams of clients and the source of events."""

from enum import StrEnum
from typing import Protocol

from parley.identity import User


class Ending(StrEnum):
    """Why a subscription has ended."""

    RESYNC = "resync"  # The reader has to start again without a cursor.
    GOING_AWAY = "going_away"  # The reader reconnects with its cursor.
    NOT_FOUND = "not_found"  # The reader may no longer read the chat.


class EventSink(Protocol):
    """Receives the events of one subscription; it never blocks."""

    def take(self, kind: str, frame: bytes) -> None:
        """Called with one event, encoded for clients."""
        ...

    def end(self, why: Ending) -> None:
        """Called once, after the last event."""
        ...


class Subscription(Protocol):
    """The events of one reader, until it is closed."""

    def confirm_delivered(self) -> None:
        """Confirm that all events so far have been sent to the client."""
        ...

    def close(self) -> None:
        """End the subscription; may be called at any time and repeatedly."""
        ...


class ChatEventSource(Protocol):
    """The source of the events of chats."""

    async def open(
        self, user: User, chat_id: str, reader: EventSink, *, cursor: str, after_id: int
    ) -> Subscription:
        """Subscribe to a chat for a user.

        Raises:
            UpstreamProblem: There is no such chat for this user, or no process responds.
        """
        ...

    async def open_feed(self, user: User, reader: EventSink, *, cursor: str) -> Subscription:
        """Subscribe to a user's list of chats.

        Raises:
            UpstreamProblem: No process responds.
        """
        ...
