"""Live parts of the chats that this process runs, for the others whose readers want them."""

from collections.abc import Callable

from chatd.primitives.domain.ids import ChatId
from chatd.streams.engine.live import LiveChats, LivePart
from chatd.streams.rpc import wire
from chatd.streams.rpc.position import Position
from chatd.streams.rpc.subscription import Close, Subscription


class RelaySource:
    """Passes parts on as they are numbered; cursors are left to whoever serves the readers."""

    def __init__(self, live: LiveChats) -> None:
        self._live = live
        self._followers: dict[ChatId, dict[Subscription, None]] = {}
        live.listen(self._shown)

    def follow(
        self, chat_id: ChatId, seen: Position, wake: Callable[[Subscription], None]
    ) -> Subscription:
        """Pass on the parts of whatever episode is open, behind those that were seen of it."""
        subscription = Subscription(seen, wake)
        subscription.open()
        for part in self._live.open_parts(chat_id):
            is_seen = seen.episode == (part.history_version, part.generation_attempt)
            if not is_seen or part.seq > seen.seq:
                subscription.put(wire.part_body(part))
        self._followers.setdefault(chat_id, {})[subscription] = None
        return subscription

    def leave(self, chat_id: ChatId, subscription: Subscription) -> None:
        """Pass on no more."""
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
            subscription.confirm(len(body))  # Nobody confirms here, and nothing waits for it.
            if not subscription.put(body):
                subscription.close(Close.RESYNC, drop=True)
                self.leave(chat_id, subscription)
