"""The queue of one subscriber: bounded by merging, so that a publisher never blocks."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager

from parley.bus.port import BusItem, Notice, Resync

WAITING_MAX = 4096


class Subscription:
    """The items one subscriber has not read yet: at most one per id, and at most one `Resync`."""

    def __init__(self, *, waiting_max: int = WAITING_MAX) -> None:
        self._waiting_max = waiting_max
        self._notices: dict[str, Notice] = {}
        self._must_resync = False
        self._something = asyncio.Event()

    def offer(self, notice: Notice) -> None:
        """Keep the newest version of the notice's id; above `waiting_max` ids queue a `Resync`."""
        known = self._notices.get(notice.id)
        if known is None and len(self._notices) >= self._waiting_max:
            self.offer_resync()
            return
        if known is None or known.version < notice.version:
            self._notices[notice.id] = notice
        self._something.set()

    def offer_resync(self) -> None:
        """Replace all waiting items by one `Resync`, which covers them."""
        self._notices.clear()
        self._must_resync = True
        self._something.set()

    def __aiter__(self) -> AsyncIterator[BusItem]:
        return self

    async def __anext__(self) -> BusItem:
        await self._something.wait()
        item = self._take()
        if not self._must_resync and not self._notices:
            self._something.clear()
        return item

    def _take(self) -> BusItem:
        if self._must_resync:
            self._must_resync = False
            return Resync()
        return self._notices.pop(next(iter(self._notices)))


class Subscriptions:
    """The subscriptions of one process, by topic."""

    def __init__(self) -> None:
        self._by_topic: dict[str, list[Subscription]] = {}
        self._left: set[str] = set()

    @contextmanager
    def open(self, topic: str) -> Iterator[Subscription]:
        """Yield a new subscription that ends with the context.

        If a subscription to the topic has ended before, the new one begins with a `Resync`: it may
        belong to the same subscriber, restarted after a failure, and notices in between were
        missed.
        """
        subscription = Subscription()
        if topic in self._left:
            subscription.offer_resync()
        subscribers = self._by_topic.setdefault(topic, [])
        subscribers.append(subscription)
        try:
            yield subscription
        finally:
            subscribers.remove(subscription)
            self._left.add(topic)
            if not subscribers:
                del self._by_topic[topic]

    def deliver(self, notices: Iterable[Notice]) -> None:
        """Offer each notice to the subscribers of its topic."""
        for notice in notices:
            for subscription in self._by_topic.get(notice.topic, ()):
                subscription.offer(notice)

    def resync(self) -> None:
        """Queue a `Resync` for every subscriber."""
        for subscribers in self._by_topic.values():
            for subscription in subscribers:
                subscription.offer_resync()
