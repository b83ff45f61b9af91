"""One client's subscription, on its current link."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from gateway.streams.event_source import Ending, EventSink
from gateway.streams.frames import Frame
from parley.clock import backoff_s
from parley.identity import User

CONFIRMED_BYTES = 64 * 1024
MOVE_S = 0.1
MOVE_S_MAX = 5.0


class SubscriptionLink(Protocol):
    """A link of subscriptions, such as `gateway.streams.link.Link`."""

    def confirm(self, subscription_id: int, size: int) -> None:
        """Confirm how many bytes of a subscription were sent to the client."""
        ...

    def remove(self, subscription: "LinkSubscription") -> None:
        """Remove a subscription."""
        ...


class LinkSubscription:
    """One client's subscription, on its current link.

    Attributes:
        cursor: The last event that was passed on.
        opened: Done once chatd has responded; contains the ending if it refused.
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
        """The key that determines the preferred process."""
        return self.chat_id or self.user.id

    def delay_s(self) -> float:
        """Return the delay before the next process is tried: 0 for the first attempt."""
        self._failed_attempts += 1
        failures = self._failed_attempts - 1
        return backoff_s(failures, MOVE_S, MOVE_S_MAX) if failures else 0.0

    def take(self, frame: Frame) -> None:
        """Pass an event on to the reader."""
        self._failed_attempts = 0
        self.cursor = frame.cursor or self.cursor
        if frame.kind:
            self._reader.take(frame.kind, frame.bytes)

    def end(self, why: Ending) -> None:
        """Notify the reader, and close."""
        if not self.is_closed:
            self.close()
            if self.opened.done():
                self._reader.end(why)
            else:
                self.opened.set_result(why)

    def confirm_delivered(self) -> None:
        """Confirm that all events so far have been sent to the client."""
        unconfirmed = self.received_bytes - self._confirmed_bytes
        if unconfirmed >= CONFIRMED_BYTES and self.link is not None:
            self._confirmed_bytes = self.received_bytes
            self.link.confirm(self.id, unconfirmed)

    def placed(self, link: SubscriptionLink) -> None:
        """Continue on another link, whose byte count starts at zero."""
        self.link = link
        self._confirmed_bytes = self.received_bytes

    def close(self) -> None:
        """End the subscription; may be called at any time and repeatedly."""
        if self.is_closed:
            return
        self.is_closed = True
        self.when_closed(self)
        if self.link is not None:
            self.link.remove(self)
