"""Serves the live parts of chats that run in this process to other processes."""

from collections.abc import Callable

from chatd.primitives.domain.ids import ChatId
from chatd.streams.engine.live import LiveChats, LivePart
from chatd.streams.rpc import wire
from chatd.streams.rpc.position import Position
from chatd.streams.rpc.subscription import Close, Subscription


class RelaySource:
    """Forwards parts when they are numbered; the process that serves the readers adds cursors."""

    def __init__(self, live: LiveChats) -> None:
        self._live = live
        self._followers: dict[ChatId, dict[Subscription, None]] = {}
        live.listen(self._shown)

    def follow(
        self, chat_id: ChatId, seen: Position, wake: Callable[[Subscription], None]
    ) -> Subscription:
        """Forward the parts of the open episode, after those already received of it."""
        subscription = Subscription(seen, wake)
        subscription.open()
        for part in self._live.open_parts(chat_id):
            is_seen = seen.episode == (part.history_version, part.generation_attempt)
            if not is_seen or part.seq > seen.seq:
                subscription.put(wire.part_body(part))
        self._followers.setdefault(chat_id, {})[subscription] = None
        return subscription

    def leave(self, chat_id: ChatId, subscription: Subscription) -> None:
        """Stop forwarding."""
        followers = self._followers.get(chat_id)
        if followers is not None:
            followers.pop(subscription, None)
            if not followers:
                del self._followers[chat_id]

    def _shown(self, chat_id: ChatId, part: LivePart) -> None:
        followers = self._followers.get(chat_id)
        if not followers:
            return
        body = wire.part_body(part)
        for subscription in list(followers):
            subscription.confirm(len(body))  # Relays send no confirmations.
            if not subscription.put(body):
                subscription.close(Close.RESYNC, drop=True)
                self.leave(chat_id, subscription)
