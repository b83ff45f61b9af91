"""The readers of one chat: live readers are sent events at once, the others catch up first."""

from msgspec.structs import replace

from chatd.primitives.domain.ids import ChatId
from chatd.streams.rpc.drops import Drops
from chatd.streams.rpc.position import Position
from chatd.streams.rpc.subscription import Close, Subscription


class Readers:
    """All readers of a chat in this process.

    A reader may have received parts that this process has not received yet, from a process that was
    faster; it is "ahead" until this process has received them.
    """

    def __init__(self, chat_id: ChatId, drops: Drops) -> None:
        self._chat_id = chat_id
        self._drops = drops
        self._live: dict[Subscription, None] = {}
        self._joining: dict[Subscription, None] = {}
        self._ahead: dict[Subscription, int] = {}

    def __len__(self) -> int:
        return len(self._live) + len(self._joining)

    @property
    def has_live(self) -> bool:
        """Whether events have to be encoded and sent at all."""
        return bool(self._live)

    def join(self, subscription: Subscription) -> None:
        """Add a reader that has to catch up."""
        self._joining[subscription] = None

    def is_joining(self, subscription: Subscription) -> bool:
        """Return whether a reader is still subscribed and has to catch up."""
        return subscription in self._joining

    def go_live(self, subscription: Subscription, seq: int, last_seq: int) -> None:
        """Mark a reader that caught up to part `seq` as live."""
        del self._joining[subscription]
        self._live[subscription] = None
        if seq > last_seq:
            self._ahead[subscription] = seq

    def leave(self, subscription: Subscription) -> None:
        """Remove a reader."""
        self._live.pop(subscription, None)
        self._joining.pop(subscription, None)
        self._ahead.pop(subscription, None)

    def close(self, why: Close) -> None:
        """Close all subscriptions."""
        for subscription in (*self._live, *self._joining):
            subscription.close(why)
        self._live.clear()
        self._joining.clear()
        self._ahead.clear()

    def push(self, events: list[bytes], seq: int = 0) -> None:
        """Send events to all live readers; part `seq` is not sent to readers ahead of it."""
        lost: list[Subscription] = []
        for subscription in self._live:
            if self._ahead and seq and seq <= self._ahead.get(subscription, 0):
                continue
            for event in events:
                if not subscription.put(event):
                    lost.append(subscription)
                    break
        for subscription in lost:
            dropped = subscription.close(Close.RESYNC, drop=True)
            self.leave(subscription)
            self._drops.note(self._chat_id, dropped + len(events))

    def enter_episode(self) -> None:
        """Reset the "ahead" marks: no reader is ahead in an episode that has just begun."""
        self._ahead.clear()

    def fall_behind(self, seen: Position) -> list[Subscription]:
        """Return all live readers, which were at `seen`: they have to join again from there."""
        live, self._live = self._live, {}
        for subscription in live:
            seq = max(seen.seq, self._ahead.pop(subscription, 0))
            subscription.position = replace(seen, seq=seq)
        return list(live)
