"""One client's subscription, wherever it is carried at the moment."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from gateway.streams.event_source import Ending, EventSink
from gateway.streams.frames import Frame
from parley.identity import User

CONFIRMED_BYTES = 64 * 1024
MOVE_S = 0.1
MOVE_S_MAX = 5.0


class SubscriptionLink(Protocol):
    """What carries subscriptions, as `gateway.streams.link.Link` does."""

    def confirm(self, subscription_id: int, size: int) -> None:
        """Say how much of a subscription was passed on."""
        ...

    def remove(self, subscription: "LinkSubscription") -> None:
        """Carry a subscription no more."""
        ...


class LinkSubscription:
    """One client's subscription, wherever it is carried at the moment.

    Attributes:
        cursor: The last event that was passed on.
        opened: Done once chatd has answered; the ending if it refused.
    """

    def __init__(
        self, id: int, user: User, chat_id: str, reader: EventSink, *, cursor: str, after_id: int
    ) -> None:
        self.id = id
        self.user = user
        self.chat_id = chat_id
        self.cursor = cursor
        self.after_id = after_id
        self.opened: asyncio.Future[Ending | None] = asyncio.get_running_loop().create_future()
        self.is_closed = False
        self.link: SubscriptionLink | None = None
        self.received_bytes = 0
        self.when_closed: Callable[[LinkSubscription], None] = lambda _: None
        self._reader = reader
        self._confirmed_bytes = 0
        self._failed_attempts = 0  # Since the last event.

    @property
    def key(self) -> str:
        """What decides which process it prefers."""
        return self.chat_id or self.user.id

    def delay_s(self) -> float:
        """Return how long to wait before the next process is tried: not at all at first."""
        self._failed_attempts += 1
        return (
            0.0
            if self._failed_attempts == 1
            else min(MOVE_S * 2.0 ** (self._failed_attempts - 2), MOVE_S_MAX)
        )

    def take(self, frame: Frame) -> None:
        """Hand an event on."""
        self._failed_attempts = 0
        self.cursor = frame.cursor or self.cursor
        if frame.kind:
            self._reader.take(frame.kind, frame.bytes)

    def end(self, why: Ending) -> None:
        """Tell the reader, and let go."""
        if not self.is_closed:
            self.close()
            if self.opened.done():
                self._reader.end(why)
            else:
                self.opened.set_result(why)

    def confirm_delivered(self) -> None:
        """Say that everything taken so far has been passed on to the client."""
        unconfirmed = self.received_bytes - self._confirmed_bytes
        if unconfirmed >= CONFIRMED_BYTES and self.link is not None:
            self._confirmed_bytes = self.received_bytes
            self.link.confirm(self.id, unconfirmed)

    def placed(self, link: SubscriptionLink) -> None:
        """Begin on another link, which knows nothing of what came before."""
        self.link = link
        self._confirmed_bytes = self.received_bytes

    def close(self) -> None:
        """Let go; safe to call at any time and more than once."""
        if self.is_closed:
            return
        self.is_closed = True
        self.when_closed(self)
        if self.link is not None:
            self.link.remove(self)
