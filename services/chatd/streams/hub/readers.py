"""The readers of one chat: those who are live get what happens, the others catch up first."""

from msgspec.structs import replace

from chatd.primitives.domain.ids import ChatId
from chatd.streams.rpc.drops import Drops
from chatd.streams.rpc.position import Position
from chatd.streams.rpc.subscription import Close, Subscription


class Readers:
    """Everybody who reads a chat in this process.

    A reader may know parts that are not known here yet, from a process that was faster; it is ahead
    until they are.
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
        """Whether anything that happens has to be told."""
        return bool(self._live)

    def join(self, subscription: Subscription) -> None:
        """Take in a reader who has to catch up."""
        self._joining[subscription] = None

    def is_joining(self, subscription: Subscription) -> bool:
        """Return whether a reader is still here and has to catch up."""
        return subscription in self._joining

    def go_live(self, subscription: Subscription, seq: int, last_seq: int) -> None:
        """Let a reader who caught up to part `seq` stand where all who are live stand."""
        del self._joining[subscription]
        self._live[subscription] = None
        if seq > last_seq:
            self._ahead[subscription] = seq

    def leave(self, subscription: Subscription) -> None:
        """Let a reader go."""
        self._live.pop(subscription, None)
        self._joining.pop(subscription, None)
        self._ahead.pop(subscription, None)

    def close(self, why: Close) -> None:
        """Send everybody away."""
        for subscription in (*self._live, *self._joining):
            subscription.close(why)
        self._live.clear()
        self._joining.clear()
        self._ahead.clear()

    def push(self, events: list[bytes], seq: int = 0) -> None:
        """Tell everybody live; a part with its number, for those who are ahead of it."""
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
        """Know that nobody is ahead in an episode that has only begun."""
        self._ahead.clear()

    def fall_behind(self, seen: Position) -> list[Subscription]:
        """Return all who were live, and stood at `seen`: they have to join again from there."""
        live, self._live = self._live, {}
        for subscription in live:
            seq = max(seen.seq, self._ahead.pop(subscription, 0))
            subscription.position = replace(seen, seq=seq)
        return list(live)
