"""A bus within one process, for tests and for code that needs no other process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from parley.bus.port import BusItem, Notice
from parley.bus.subscription import Subscriptions


class InMemoryBus:
    """Delivers at once to the subscribers of this object."""

    def __init__(self) -> None:
        self._subscriptions = Subscriptions()

    def publish(self, *notices: Notice) -> None:
        """Deliver the notices."""
        self._subscriptions.deliver(notices)

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncIterator[AsyncIterator[BusItem]]:
        """Yield all notices of `topic` while the context is open."""
        with self._subscriptions.open(topic) as subscription:
            yield subscription

    def lose_connection(self) -> None:
        """Act as PostgresBus does after a lost connection: every subscriber gets a `Resync`."""
        self._subscriptions.resync()
