"""Where events come from, as the streams of clients see it: who takes them, and how that ends."""

from enum import StrEnum
from typing import Protocol

from parley.identity import User


class Ending(StrEnum):
    """Why a subscription has no more events."""

    RESYNC = "resync"  # The reader has to begin anew, without a cursor.
    GOING_AWAY = "going_away"  # The reader goes on elsewhere, with its cursor.
    NOT_FOUND = "not_found"  # The chat is none of the reader's any more.


class EventSink(Protocol):
    """Takes the events of one subscription; it never makes anybody wait."""

    def take(self, kind: str, frame: bytes) -> None:
        """Take one event, framed for clients."""
        ...

    def end(self, why: Ending) -> None:
        """Learn that there are no more; this comes once and last."""
        ...


class Subscription(Protocol):
    """One reader's events, which come until it lets go."""

    def confirm_delivered(self) -> None:
        """Say that everything taken so far has been passed on to the client."""
        ...

    def close(self) -> None:
        """Let go; safe to call at any time and more than once."""
        ...


class ChatEventSource(Protocol):
    """Where the events of chats come from."""

    async def open(
        self, user: User, chat_id: str, reader: EventSink, *, cursor: str, after_id: int
    ) -> Subscription:
        """Begin to follow a chat for a user.

        Raises:
            UpstreamProblem: There is no such chat for this user, or nobody answers.
        """
        ...

    async def open_feed(self, user: User, reader: EventSink, *, cursor: str) -> Subscription:
        """Begin to follow a user's list of chats.

        Raises:
            UpstreamProblem: Nobody answers.
        """
        ...
