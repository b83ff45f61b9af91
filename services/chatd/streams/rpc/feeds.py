"""Feeds of users' chat lists: one query for all followers, whenever a chat changed.

A cursor is the transaction horizon of a query and a time in microseconds that is unique in this
process, so every event has an id of its own. The events of one query carry the horizon before it,
except the last one, so that a reader whose stream breaks in between receives the others again
rather than never.

A chat is sent as created to a reader that was not sent it before and that subscribed before it was
created, or shared with the reader; this is decided by the transaction that did so, however far its
first turn has come. A chat that is no longer shared is sent as deleted. Readers whose groups change
have to read their lists anew.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol

from chatd.chats.domain.break_glass import BreakGlassAccess
from chatd.chats.rpc.convert import access_to_proto, chat_to_proto
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.streams.rpc.drops import Drops
from chatd.streams.rpc.position import NUMBER_MAX, Position
from chatd.streams.rpc.subscription import Close, Subscription
from chatd.streams.rpc.wire import with_cursor
from chatd.streams.store.feeds import KEPT, ChangedChat, FeedChanges
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import reader_in_groups
from parley.api.chat.v1 import chat_pb2, event_pb2
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

LOOK_S = 5.0
JOINED_S = 0.05
REPLAYED_MAX = 1000
SENT_MAX = 4096
METADATA_CHANGES_MAX = 1000
FORGET_EVERY_LOOKS = 720
MICROSECONDS = 1_000_000

_CURSOR = re.compile(r"([0-9]{1,19})\.([0-9]{1,17})")


class FeedReads(Protocol):
    """Reads changes."""

    async def horizon(self) -> int:
        """Return the horizon from which a query that starts now misses no later commit."""
        ...

    async def changes(
        self,
        readers: Sequence[Reader],
        since: int,
        *,
        limit: int,
        is_thorough: bool,
        metadata_changed: Collection[ChatId] = (),
    ) -> FeedChanges:
        """Return the changes of the chats that some users may read.

        Those among `metadata_changed` are always returned.
        """
        ...

    async def forget(self) -> None:
        """Delete old records of deleted chats."""
        ...


@dataclass(frozen=True, slots=True)
class _Change:
    """A change, encoded for readers.

    Attributes:
        readers: The users and groups that may have the chat in their lists, with the transaction
            that put it there.
        chat_id: The chat.
        body: The event for readers that have the chat in their list.
        created: The event for readers that do not; None if the chat is gone.
        lost_by: The user or group that lost the chat, if that is the change.
        kept_by: The users and groups that can read it nevertheless.
        sent_to: The users and groups that were sent the chat before, as far as this process
            remembers.
        is_back: Whether readers were sent that it is gone.
    """

    readers: Mapping[str, int]
    chat_id: ChatId
    body: bytes
    created: bytes | None = None
    lost_by: str = ""
    kept_by: frozenset[str] = frozenset()
    sent_to: frozenset[str] = frozenset()
    is_back: bool = False

    def is_for(self, ids: Collection[str]) -> bool:
        """Return whether a reader with these ids, the own one and those of groups, is sent it."""
        return not self.readers.keys().isdisjoint(ids) and self.kept_by.isdisjoint(ids)

    def event_since(self, since: int, ids: Collection[str]) -> bytes:
        """Return the event for a reader that has all chats visible at a horizon."""
        xid = min((self.readers[each] for each in ids if each in self.readers), default=0)
        is_first = self.sent_to.isdisjoint(ids)
        is_new = self.is_back or (is_first and xid >= since)
        return self.created if is_new and self.created is not None else self.body


@dataclass(frozen=True, slots=True)
class _Sent:
    """The last event of a chat, and who was sent it."""

    body: bytes
    readers: frozenset[str]


class Feeds:
    """Follows the chat lists of all subscribed users; its owner runs `run`."""

    def __init__(self, reads: FeedReads, groups: Groups, clock: Clock) -> None:
        self._reads = reads
        self._groups = groups
        self._clock = clock
        self._followers: dict[OwnerId, dict[Subscription, None]] = {}
        self._readers: dict[OwnerId, Reader] = {}
        self._members: dict[str, set[OwnerId]] = {}
        self._with_other_groups: set[OwnerId] = set()
        self._joining: dict[Subscription, list[tuple[str, _Change]]] = {}
        self._since: dict[Subscription, int] = {}
        self._metadata_changed: set[ChatId] = set()
        self._is_suspect = False
        self._last_us = 0
        self._horizon = 0
        self._sent: BoundedCache[ChatId, _Sent] = BoundedCache(SENT_MAX)
        self._losses_sent: BoundedCache[tuple[ChatId, str], int] = BoundedCache(SENT_MAX)
        self._wakeup = asyncio.Event()
        self._replaying = asyncio.Lock()
        self.drops = Drops(clock)

    def poke(self) -> None:
        """Query soon, because a chat changed."""
        if self._followers:
            self._wakeup.set()

    def metadata_changed(self, chat_id: ChatId) -> None:
        """Query soon a chat whose metadata changed, though its execution did not."""
        if not self._followers:
            return
        if len(self._metadata_changed) < METADATA_CHANGES_MAX:
            self._metadata_changed.add(chat_id)
        else:
            self._is_suspect = True
        self._wakeup.set()

    def on_resync(self) -> None:
        """Query everything soon, because notifications may have been lost."""
        self._is_suspect = True
        self.poke()

    def groups_changed(self, user_id: OwnerId) -> None:
        """Compare soon the groups of a user with those that the feed was opened with."""
        if user_id in self._followers:
            self._with_other_groups.add(user_id)
            self._wakeup.set()

    def group_changed(self, group_id: str) -> None:
        """Compare soon the groups of all members of a group."""
        for user_id in tuple(self._members.get(group_id, ())):
            self.groups_changed(user_id)

    def on_groups_resync(self) -> None:
        """Compare soon the groups of all users, because notifications may have been lost."""
        for user_id in tuple(self._followers):
            self.groups_changed(user_id)

    async def follow(
        self, owner: OwnerId, cursor: str, wake: Callable[[Subscription], None]
    ) -> Subscription:
        """Subscribe to a user's chat list, from a cursor on or from now.

        Raises:
            DatabaseUnavailable: The changes since the cursor cannot be read.
        """
        subscription = Subscription(Position(), wake)
        subscription.open()
        seen = self._understood(cursor)
        if seen is None:
            subscription.close(Close.RESYNC)
            return subscription
        reader = await reader_in_groups(owner, self._groups)
        self._join(reader, subscription)
        self._joining[subscription] = []
        try:
            # However many subscribe at once, they must leave connections for the others.
            async with self._replaying:
                await self._replay(reader, subscription, seen)
        except BaseException:
            self.leave(owner, subscription)
            raise
        finally:
            waiting = self._joining.pop(subscription, [])
        for cursor, change in waiting:
            self._put(subscription, cursor, change, ids_of(reader))
        return subscription

    def _join(self, reader: Reader, subscription: Subscription) -> None:
        self._followers.setdefault(reader.id, {})[subscription] = None
        if reader.id not in self._readers:
            self._readers[reader.id] = reader
            for group_id in reader.group_ids:
                self._members.setdefault(group_id, set()).add(reader.id)
        elif self._readers[reader.id] != reader:
            self.groups_changed(reader.id)

    def leave(self, owner: OwnerId, subscription: Subscription) -> None:
        """Remove a reader."""
        subscription.close(Close.UNSUBSCRIBED, drop=True)
        self._since.pop(subscription, None)
        followers = self._followers.get(owner, {})
        followers.pop(subscription, None)
        if not followers:
            self._followers.pop(owner, None)
            reader = self._readers.pop(owner, None)
            for group_id in () if reader is None else reader.group_ids:
                self._members[group_id].discard(owner)
                if not self._members[group_id]:
                    del self._members[group_id]

    def close(self) -> None:
        """Close all subscriptions, because this process stops."""
        for followers in self._followers.values():
            for subscription in followers:
                subscription.close(Close.GOING_AWAY)

    async def run(self) -> NoReturn:
        """Query when something changed, and every few seconds in any case."""
        looks, looked_at = 0, self._clock.monotonic()
        while True:
            await self._something_moved()
            now = self._clock.monotonic()
            is_thorough = now - looked_at >= LOOK_S or self._is_suspect
            if is_thorough:
                looks, looked_at = looks + 1, now
            try:
                if self._with_other_groups:
                    await self._compare_groups()
                if self._followers:
                    await self._look(is_thorough)
                if is_thorough and looks % FORGET_EVERY_LOOKS == 0:
                    await self._reads.forget()
            except DatabaseUnavailable:
                continue

    async def _something_moved(self) -> None:
        """Wait for a change and briefly for more of them, at most for the poll interval."""
        if await is_set_within(self._wakeup, LOOK_S, self._clock):
            await self._clock.sleep(JOINED_S)
            self._wakeup.clear()

    async def _compare_groups(self) -> None:
        """Close the feeds of users whose groups changed: other chats are shared with them now."""
        users, self._with_other_groups = self._with_other_groups, set()
        for user_id in users:
            reader = await reader_in_groups(user_id, self._groups)
            if self._readers.get(user_id, reader) != reader:
                for subscription in tuple(self._followers.get(user_id, ())):
                    subscription.close(Close.RESYNC)

    async def _look(self, is_thorough: bool) -> None:
        since = self._horizon
        metadata_changed, self._metadata_changed, self._is_suspect = (
            self._metadata_changed,
            set(),
            False,
        )
        try:
            found = await self._reads.changes(
                tuple(self._readers.values()),
                since,
                limit=REPLAYED_MAX,
                is_thorough=is_thorough,
                metadata_changed=metadata_changed,
            )
        except DatabaseUnavailable:
            # The notification is not repeated.
            self._is_suspect = True
            raise
        for parent_id in self._parents_of_new(found, since):
            self.metadata_changed(parent_id)
        changes = [change for change in self._changes(found) if self._is_unsent(change)]
        is_all = len(found.chats) < REPLAYED_MAX and len(found.gone) < REPLAYED_MAX
        # A reader may have subscribed meanwhile, from an older horizon; and metadata changes are
        # found only by thorough queries.
        is_ahead = is_all and is_thorough and self._horizon == since
        if is_ahead:
            self._horizon = found.horizon
        for user_id, own in self._by_user(changes).items():
            self._send(user_id, own, since)
        if is_ahead:
            self._since.update(dict.fromkeys(self._since, found.horizon))

    def _by_user(self, changes: Sequence[_Change]) -> dict[OwnerId, list[_Change]]:
        """Return which followers are sent which changes."""
        by_user: dict[OwnerId, list[_Change]] = {}
        for change in changes:
            users = {OwnerId(each) for each in change.readers}.intersection(self._readers)
            users.update(*(self._members.get(each, ()) for each in change.readers))
            for user_id in users:
                if change.kept_by.isdisjoint(ids_of(self._readers[user_id])):
                    by_user.setdefault(user_id, []).append(change)
        return by_user

    def _send(self, user_id: OwnerId, changes: Sequence[_Change], since: int) -> None:
        ids = ids_of(self._readers[user_id])
        cursors = self._cursors(len(changes), since, self._horizon)
        for subscription in tuple(self._followers.get(user_id, ())):
            for cursor, change in zip(cursors, changes, strict=True):
                self._put(subscription, cursor, change, ids)

    def _is_unsent(self, change: _Change) -> bool:
        """Return whether a change was not sent yet; it is regarded as sent then."""
        if change.lost_by:
            loss, xid = (change.chat_id, change.lost_by), change.readers[change.lost_by]
            is_unsent = self._losses_sent.get(loss) != xid
            self._losses_sent.put(loss, xid)
            return is_unsent
        sent = _Sent(change.body, frozenset(change.readers))
        is_unsent = self._sent.get(change.chat_id) != sent
        self._sent.put(change.chat_id, sent)
        return is_unsent

    def _parents_of_new(self, found: FeedChanges, since: int) -> frozenset[ChatId]:
        """Return the parents of new children: their counts changed, though their rows did not."""
        return frozenset(
            chat.view.parent_chat_id
            for chat in found.chats
            if chat.view.parent_chat_id is not None
            and chat.readers[chat.view.owner.id] >= since
            and self._sent.get(chat.view.state.chat_id) is None
        )

    async def _replay(self, reader: Reader, subscription: Subscription, seen: int) -> None:
        if not seen:
            horizon = await self._reads.horizon()
        else:
            found = await self._reads.changes(
                (reader,), seen, limit=REPLAYED_MAX + 1, is_thorough=True
            )
            horizon, ids = found.horizon, ids_of(reader)
            changes = [change for change in self._changes(found) if change.is_for(ids)]
            if len(changes) > REPLAYED_MAX or seen > found.present:
                subscription.close(Close.RESYNC)
                return
            cursors = self._cursors(len(changes), seen, horizon)
            for cursor, change in zip(cursors, changes, strict=True):
                first = replace(change, sent_to=frozenset())
                subscription.put(with_cursor(cursor, first.event_since(seen, ids)))
        self._since[subscription] = horizon
        self._horizon = min(self._horizon or horizon, horizon)

    def _changes(self, found: FeedChanges) -> list[_Change]:
        gone = [
            _Change(
                {each.lost_by: each.xid},
                each.chat_id,
                _deleted(each.chat_id),
                lost_by=each.lost_by,
                kept_by=each.kept_by,
            )
            for each in found.gone
        ]
        accesses = [
            _Change({each.owner_id: 0}, ChatId(each.id), _access_event(each))
            for each in found.accesses
        ]
        return gone + accesses + [self._changed(chat) for chat in found.chats]

    def _changed(self, chat: ChangedChat) -> _Change:
        chat_id = chat.view.state.chat_id
        if chat.view.state.archived:
            return _Change(chat.readers, chat_id, _deleted(chat_id))
        shown, sent = chat_to_proto(chat.view), self._sent.get(chat_id)
        return _Change(
            chat.readers,
            chat_id,
            _feed_event(event_pb2.FEED_CHANGE_UPDATED, shown),
            _feed_event(event_pb2.FEED_CHANGE_CREATED, shown),
            sent_to=frozenset() if sent is None else sent.readers,
            is_back=sent is not None and sent.body == _deleted(chat_id),
        )

    def _cursors(self, count: int, before: int, after: int) -> list[str]:
        """Return the cursor after each of some events, all of them different."""
        horizons = [before] * (count - 1) + [after] if count else []
        return [f"{horizon}.{self._next_us()}" for horizon in horizons]

    def _next_us(self) -> int:
        """Return the time in microseconds, or a little more: never the same value twice."""
        now_us = int(self._clock.now().timestamp() * MICROSECONDS)
        self._last_us = max(self._last_us + 1, now_us)
        return self._last_us

    def _put(
        self, subscription: Subscription, cursor: str, change: _Change, ids: frozenset[str]
    ) -> None:
        if subscription in self._joining:
            self._joining[subscription].append((cursor, change))
            return
        event = with_cursor(cursor, change.event_since(self._since.get(subscription, 0), ids))
        if not subscription.put(event):
            self.drops.note(ChatId(""), subscription.close(Close.RESYNC, drop=True))

    def _understood(self, cursor: str) -> int | None:
        """Return the horizon of a cursor, 0 for now; None if it cannot be resumed."""
        if not cursor:
            return 0
        match = _CURSOR.fullmatch(cursor)
        if match is None or not 0 < int(match[1]) <= NUMBER_MAX:
            return None
        stamp = int(match[2])
        # Cursors of earlier versions are in seconds.
        stamp_s = stamp / MICROSECONDS if stamp >= MICROSECONDS**2 else stamp
        age_s = self._clock.now().timestamp() - stamp_s
        is_kept = -3600 < age_s < KEPT.total_seconds() - 86400
        return int(match[1]) if is_kept else None


def ids_of(reader: Reader) -> frozenset[str]:
    """Return the ids that chats are shared with so that a reader sees them."""
    return frozenset((reader.id, *reader.group_ids))


def _feed_event(change: "event_pb2.FeedChange.ValueType", chat: chat_pb2.Chat) -> bytes:
    return event_pb2.FeedEvent(change=change, chat=chat).SerializeToString()


def _access_event(access: BreakGlassAccess) -> bytes:
    event = event_pb2.FeedEvent(
        change=event_pb2.FEED_CHANGE_BREAK_GLASS, break_glass=access_to_proto(access)
    )
    return event.SerializeToString()


def _deleted(chat_id: ChatId) -> bytes:
    return _feed_event(event_pb2.FEED_CHANGE_DELETED, chat_pb2.Chat(id=chat_id))
