"""The hub of one chat: follows the committed chat once for all its readers in this process.

A reader is either live, at exactly the version of the hub, or it catches up: the messages that it
misses are read for it, as fast as it consumes them, until it is at the version of the hub. A step
of the hub is encoded once and queued for all live readers. A commit of this process is applied
without a read if it continues the hub's version; any other change is read, once.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from chatd.chats.domain.chat import ChatState, Message
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.streams.engine.live import LivePart
from chatd.streams.hub.broadcast import Broadcast, LiveParts
from chatd.streams.hub.catch_up import CatchUp
from chatd.streams.hub.readers import Readers
from chatd.streams.hub.reads import Reads, has_gap, read_patiently
from chatd.streams.hub.rows import ROWS_MAX
from chatd.streams.hub.steps import Snapshot
from chatd.streams.hub.timeline import Timeline
from chatd.streams.rpc.drops import Drops
from chatd.streams.rpc.position import Position
from chatd.streams.rpc.subscription import Close, Subscription
from chatd.streams.store.following import ChatReadRequest, FollowedChat
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable


@dataclass(frozen=True, slots=True)
class HubPorts:
    """Dependencies of a hub.

    Attributes:
        reads: The database.
        live_parts: Returns the live parts of an episode that this process runs.
        retarget: Is called with every state, to fetch live parts from the process that runs the
            chat.
        spawn: Starts a task that the process owns.
        drops: Counts the events that slow readers lose.
        clock: Time.
    """

    reads: Reads
    live_parts: LiveParts
    retarget: Callable[[ChatState], None]
    spawn: Callable[[Coroutine[object, object, None]], object]
    drops: Drops
    clock: Clock


class Hub:
    """Follows one chat while it has readers in this process.

    Attributes:
        expected: How many permission checks of readers are under way.
    """

    def __init__(self, chat_id: ChatId, ports: HubPorts) -> None:
        self.chat_id = chat_id
        self.expected = 0
        self._ports = ports
        self._owner_id: OwnerId | None = None  # Set once the chat was read.
        self._timeline = Timeline(chat_id)
        self._readers = Readers(chat_id, ports.drops)
        self._catch_up_sender = CatchUp(self._timeline, ports.reads, self._deepen)
        self._broadcast = Broadcast(
            self._timeline,
            self._readers,
            live_parts=ports.live_parts,
            retarget=ports.retarget,
        )
        self._is_stale = False
        self._is_syncing = False
        self._loading = asyncio.Lock()

    @property
    def head(self) -> Snapshot | None:
        """The current version of the hub; None before the first read."""
        return self._timeline.head

    @property
    def is_unused(self) -> bool:
        """Whether there are no readers and no permission checks under way."""
        return not self._readers and not self.expected

    @property
    def last_seq(self) -> int:
        """The number of the last live part of the open episode received here."""
        return self._timeline.log.last_seq

    def join(self, subscription: Subscription) -> None:
        """Add a reader; it is sent the events that it misses, then live events."""
        self._readers.join(subscription)
        self._ports.spawn(self._catch_up(subscription))

    async def owner_for(self, reader: Reader, position: Position | None) -> OwnerId | None:
        """Return the owner of the chat; None if this reader may not read it.

        For the owner no read is needed once the chat is followed. Before the first read of the
        chat, the messages that a reader at `position` needs are read along.

        Raises:
            DatabaseUnavailable: The permission cannot be checked now.
        """
        # While a sync is under way the chat may have been deleted.
        if self._owner_id == reader.id and self.head is not None and not self._is_syncing:
            return self._owner_id
        if self.head is not None or position is None or self._loading.locked():
            asked = ChatReadRequest(self.chat_id, reader=reader)
            read = await read_patiently(self._ports.reads, self._ports.clock, asked)
        else:
            async with self._loading:
                read = await self._load(position, reader)
        return None if read is None else read.owner_id

    def leave(self, subscription: Subscription) -> None:
        """Remove a reader."""
        self._readers.leave(subscription)

    def close(self, why: Close) -> None:
        """Close all subscriptions."""
        self._owner_id = None
        self._readers.close(why)

    def committed(self, state: ChatState, appended: tuple[Message, ...] | None) -> None:
        """Apply a commit of this process; read the chat if the commit is not all that changed.

        Args:
            state: The committed state.
            appended: The messages of the commit; None if they are not known.
        """
        head = self.head
        if head is None:
            self._is_stale = True
            return
        is_news = state.snapshot_version > head.version
        if is_news and not self._broadcast.continued(state, appended):
            self.suspect()

    def on_notice(self, version: int) -> None:
        """Read the chat if a notification names a version newer than the hub's."""
        if self.head is None or version > self.head.version:
            self.suspect()

    def suspect(self) -> None:
        """Read the chat, because it may have changed."""
        self._is_stale = True
        if self.head is not None and not self._is_syncing:
            self._is_syncing = True
            self._ports.spawn(self._sync())

    def shown(self, part: LivePart) -> None:
        """Forward a part that this process published."""
        self._broadcast.shown(part)

    def relayed(self, episode: tuple[int, int], seq: int, body: bytes) -> None:
        """Forward a part that the chat's owner published."""
        if self._broadcast.relayed(episode, seq, body):
            self.suspect()

    async def _sync(self) -> None:
        """Read the chat until no further change is suspected."""
        try:
            while self._is_stale and not self.is_unused:
                self._is_stale = False
                head = self.head
                assert head is not None
                after = head.version
                read = await self._read(after, with_deletions=False)
                if read is not None and has_gap(read):
                    after = 0
                    read = await self._read(after, with_deletions=True)
                if read is None:
                    self.close(Close.NOT_FOUND)
                    return
                self._take(read, after)
        except DatabaseUnavailable:
            self.close(Close.INTERNAL)
        except Exception:
            # Its readers would wait for ever; closed, they can subscribe at another process.
            self.close(Close.INTERNAL)
            raise
        finally:
            self._is_syncing = False

    async def _read(
        self, after: int, *, with_deletions: bool, reader: Reader | None = None
    ) -> FollowedChat | None:
        asked = ChatReadRequest(self.chat_id, after, ROWS_MAX, with_deletions, reader)
        return await read_patiently(self._ports.reads, self._ports.clock, asked)

    def _take(self, read: FollowedChat, after: int) -> None:
        for subscription in self._broadcast.take(read, after):
            self.join(subscription)

    async def _deepen(self) -> None:
        """Read the newest messages again, because a reader needs older ones."""
        read = await self._read(0, with_deletions=True)
        if read is None:
            self.close(Close.NOT_FOUND)
            return
        self._take(read, 0)
        self._timeline.deepen(read)

    async def _catch_up(self, subscription: Subscription) -> None:
        try:
            if self.head is None and not await self._is_loaded(subscription.position):
                self.close(Close.NOT_FOUND)
                return
            while self._readers.is_joining(subscription):
                if await self._caught_up(subscription):
                    return
        except DatabaseUnavailable:
            subscription.close(Close.INTERNAL)
            self.leave(subscription)
        except Exception:
            subscription.close(Close.INTERNAL)
            self.leave(subscription)
            raise

    async def _is_loaded(self, position: Position) -> bool:
        """Read the chat for the first time, once for all readers that wait for it."""
        async with self._loading:
            return self.head is not None or await self._load(position) is not None

    async def _load(self, position: Position, reader: Reader | None = None) -> FollowedChat | None:
        """Read the chat for the first time; the caller holds the lock."""
        self._is_stale = False
        after = position.rows_behind[1]
        read = await self._read(after, with_deletions=True, reader=reader)
        if read is not None:
            self._owner_id = read.owner_id
            self._take(read, after)
            if self._is_stale:
                self.suspect()
        return read

    async def _caught_up(self, subscription: Subscription) -> bool:
        """Bring a reader to the current version; return whether it is live then."""
        now = self.head
        assert now is not None
        seen = subscription.position
        if seen.target > now.version:
            await self._look_for(subscription, now)
        elif seen.target < now.version or not seen.is_between_steps:
            await self._catch_up_sender.send_step(subscription, now)
        elif (blocked_bytes := self._catch_up_sender.send_parts(subscription)) is not None:
            await self._catch_up_sender.made_room(subscription, blocked_bytes)
        else:
            self._readers.go_live(subscription, subscription.position.seq, self.last_seq)
            return True
        return False

    async def _look_for(self, subscription: Subscription, now: Snapshot) -> None:
        """Read the version that a reader has already seen from another process, if it exists."""
        read = await self._read(now.version, with_deletions=False)
        if read is None or subscription.position.target > read.state.snapshot_version:
            # The chat never had this version.
            subscription.close(Close.RESYNC)
            self.leave(subscription)
            return
        self.suspect()
        if not has_gap(read):
            self._take(read, now.version)
