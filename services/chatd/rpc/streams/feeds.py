"""The feeds of users' lists of chats: one look for all who follow, whenever something moved.

A cursor is the horizon of a look and when that was. Events of one look carry the horizon before it,
but for the last, so that a reader who is cut in between gets the others again rather than never.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol

from chatd.domain.chat import ChatId, OwnerId
from chatd.domain.views import ChatView
from chatd.rpc.convert import chat_to_proto
from chatd.rpc.streams.drops import Drops
from chatd.rpc.streams.position import NUMBER_MAX, Position
from chatd.rpc.streams.subscription import Close, Subscription
from chatd.rpc.streams.wire import with_cursor
from chatd.store.feeds import KEPT, FeedChanges
from parley.api.chat.v1 import chat_pb2, event_pb2
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

LOOK_S = 5.0
JOINED_S = 0.05
REPLAYED_MAX = 1000
SENT_MAX = 4096
FORGET_EVERY_LOOKS = 720

_CURSOR = re.compile(r"([0-9]{1,19})\.([0-9]{1,12})")


class FeedReads(Protocol):
    """Where changes are read."""

    async def horizon(self) -> int:
        """Return from where a look that begins now would miss nothing that comes."""
        ...

    async def changes(
        self, owners: Sequence[OwnerId], since: int, *, limit: int, is_thorough: bool
    ) -> FeedChanges:
        """Return what changed of the chats of some users."""
        ...

    async def forget(self) -> None:
        """Forget what was deleted long ago."""
        ...


class Feeds:
    """Follows the lists of all users who want it; its owner runs `run`."""

    def __init__(self, reads: FeedReads, clock: Clock) -> None:
        self._reads = reads
        self._clock = clock
        self._followers: dict[OwnerId, dict[Subscription, None]] = {}
        self._joining: dict[Subscription, list[bytes]] = {}
        self._horizon = 0
        self._sent: OrderedDict[ChatId, bytes] = OrderedDict()
        self._news = asyncio.Event()
        self._replaying = asyncio.Lock()
        self.drops = Drops(clock)

    def poke(self) -> None:
        """Look soon, because a chat moved."""
        if self._followers:
            self._news.set()

    async def follow(
        self, owner: OwnerId, cursor: str, wake: Callable[[Subscription], None]
    ) -> Subscription:
        """Begin to follow a user's list, from a cursor on or from now.

        Raises:
            DatabaseUnavailable: what happened since the cursor cannot be read.
        """
        subscription = Subscription(Position(), wake)
        subscription.open()
        seen = self._understood(cursor)
        if seen is None:
            subscription.close(Close.RESYNC)
            return subscription
        self._followers.setdefault(owner, {})[subscription] = None
        self._joining[subscription] = []
        try:
            # However many begin at once, they must leave connections for the others.
            async with self._replaying:
                await self._replay(owner, subscription, seen)
        except BaseException:
            self.leave(owner, subscription)
            raise
        finally:
            waiting = self._joining.pop(subscription, [])
        for event in waiting:
            self._put(subscription, event)
        return subscription

    def leave(self, owner: OwnerId, subscription: Subscription) -> None:
        """Let a reader go."""
        subscription.close(Close.UNSUBSCRIBED, drop=True)
        followers = self._followers.get(owner, {})
        followers.pop(subscription, None)
        if not followers:
            self._followers.pop(owner, None)

    def close(self) -> None:
        """Send every reader away, because this process stops."""
        for followers in self._followers.values():
            for subscription in followers:
                subscription.close(Close.GOING_AWAY)

    async def run(self) -> NoReturn:
        """Look when something moved, and every few seconds in any case."""
        looks, looked_at = 0, self._clock.monotonic()
        while True:
            await self._something_moved()
            now = self._clock.monotonic()
            is_thorough = now - looked_at >= LOOK_S
            if is_thorough:
                looks, looked_at = looks + 1, now
            try:
                if self._followers:
                    await self._look(is_thorough)
                if is_thorough and looks % FORGET_EVERY_LOOKS == 0:
                    await self._reads.forget()
            except DatabaseUnavailable:
                continue

    async def _something_moved(self) -> None:
        """Wait for news, and a moment for more of it; or for as long as there may be none."""
        async with asyncio.TaskGroup() as tasks:
            waits = {
                tasks.create_task(self._news.wait()),
                tasks.create_task(self._clock.sleep(LOOK_S)),
            }
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        if self._news.is_set():
            await self._clock.sleep(JOINED_S)
            self._news.clear()

    async def _look(self, is_thorough: bool) -> None:
        owners, since = tuple(self._followers), self._horizon
        found = await self._reads.changes(
            owners, since, limit=REPLAYED_MAX, is_thorough=is_thorough
        )
        by_owner: dict[OwnerId, list[bytes]] = {}
        for owner, chat_id, body in self._bodies(found):
            if self._sent.get(chat_id) != body:
                self._remember(chat_id, body)
                by_owner.setdefault(owner, []).append(body)
        is_all = len(found.chats) < REPLAYED_MAX and len(found.deleted) < REPLAYED_MAX
        # Somebody may have begun meanwhile, further back; and metadata is seen by thorough looks.
        if is_all and is_thorough and self._horizon == since:
            self._horizon = found.horizon
        for owner, bodies in by_owner.items():
            events = self._with_cursors(bodies, since, self._horizon)
            for subscription in tuple(self._followers.get(owner, ())):
                for event in events:
                    self._put(subscription, event)

    async def _replay(self, owner: OwnerId, subscription: Subscription, seen: int) -> None:
        if not seen:
            horizon = await self._reads.horizon()
        else:
            found = await self._reads.changes(
                (owner,), seen, limit=REPLAYED_MAX + 1, is_thorough=True
            )
            horizon = found.horizon
            bodies = [body for _, _, body in self._bodies(found)]
            if len(bodies) > REPLAYED_MAX or seen > found.present:
                subscription.close(Close.RESYNC)
                return
            for event in self._with_cursors(bodies, seen, horizon):
                subscription.put(event)
        self._horizon = min(self._horizon or horizon, horizon)

    def _bodies(self, found: FeedChanges) -> list[tuple[OwnerId, ChatId, bytes]]:
        gone = [(owner, chat_id, _deleted(chat_id)) for chat_id, owner in found.deleted]
        changed = [(chat.owner.id, chat.state.chat_id, self._changed(chat)) for chat in found.chats]
        return gone + changed

    def _changed(self, chat: ChatView) -> bytes:
        chat_id = chat.state.chat_id
        if chat.state.archived:
            return _deleted(chat_id)
        is_back = self._sent.get(chat_id) == _deleted(chat_id)
        is_new = chat.state.snapshot_version == 1 or is_back
        change = event_pb2.FEED_CHANGE_CREATED if is_new else event_pb2.FEED_CHANGE_UPDATED
        return event_pb2.FeedEvent(change=change, chat=chat_to_proto(chat)).SerializeToString()

    def _remember(self, chat_id: ChatId, body: bytes) -> None:
        self._sent[chat_id] = body
        self._sent.move_to_end(chat_id)
        if len(self._sent) > SENT_MAX:
            self._sent.popitem(last=False)

    def _with_cursors(self, bodies: list[bytes], before: int, after: int) -> list[bytes]:
        now = int(self._clock.now().timestamp())
        cursors = [before] * (len(bodies) - 1) + [after]
        return [
            with_cursor(f"{cursor}.{now}", body)
            for cursor, body in zip(cursors, bodies, strict=False)
        ]

    def _put(self, subscription: Subscription, event: bytes) -> None:
        if subscription in self._joining:
            self._joining[subscription].append(event)
        elif not subscription.put(event):
            self.drops.note(ChatId(""), subscription.close(Close.RESYNC, drop=True))

    def _understood(self, cursor: str) -> int | None:
        """Return the horizon of a cursor, 0 for now; None if it cannot be resumed."""
        if not cursor:
            return 0
        match = _CURSOR.fullmatch(cursor)
        if match is None or not 0 < int(match[1]) <= NUMBER_MAX:
            return None
        age_s = self._clock.now().timestamp() - int(match[2])
        is_kept = -3600 < age_s < KEPT.total_seconds() - 86400
        return int(match[1]) if is_kept else None


def _deleted(chat_id: ChatId) -> bytes:
    change = event_pb2.FEED_CHANGE_DELETED
    return event_pb2.FeedEvent(change=change, chat=chat_pb2.Chat(id=chat_id)).SerializeToString()
