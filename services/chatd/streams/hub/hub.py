"""One chat's hub: follows the committed chat once and tells all its readers in this process.

Readers are either live, and then stand exactly where the hub stands, or they catch up: what they
miss is read for each of them, as fast as they take it, until they stand where the hub stands. A
step of the hub is encoded once and put in line for everybody live. What this process commits is
taken over without a read if it continues the hub's version; whatever else happens is read, once.
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
    """What a hub needs of its process.

    Attributes:
        reads: The database.
        live_parts: What this process shows of an episode that it runs itself.
        retarget: Is told of every state, to fetch live parts from whoever runs the chat.
        spawn: Starts a task that the process owns.
        drops: Counts what slow readers lose.
        clock: Time.
    """

    reads: Reads
    live_parts: LiveParts
    retarget: Callable[[ChatState], None]
    spawn: Callable[[Coroutine[object, object, None]], object]
    drops: Drops
    clock: Clock


class Hub:
    """Follows one chat for as long as anybody reads it here.

    Attributes:
        expected: How many are being asked whether they may read.
    """

    def __init__(self, chat_id: ChatId, ports: HubPorts) -> None:
        self.chat_id = chat_id
        self.expected = 0
        self._ports = ports
        self._owner_id: OwnerId | None = None  # Known while the chat is.
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
        """Where the hub stands; None as long as nothing was read."""
        return self._timeline.head

    @property
    def is_unused(self) -> bool:
        """Whether nobody reads here, and nobody is about to."""
        return not self._readers and not self.expected

    @property
    def last_seq(self) -> int:
        """The last live part of the open episode that is known here."""
        return self._timeline.log.last_seq

    def join(self, subscription: Subscription) -> None:
        """Take a reader in; it is sent what it misses, then what happens."""
        self._readers.join(subscription)
        self._ports.spawn(self._catch_up(subscription))

    async def owner_for(self, reader: Reader, position: Position | None) -> OwnerId | None:
        """Return whose chat it is; None if it is none that this reader may read.

        Its owner needs no read once the chat is followed. If nobody has read it yet, what a reader
        at `position` needs is read along.

        Raises:
            DatabaseUnavailable: Nobody can tell now.
        """
        # While it may have moved, it may also be gone.
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
        """Let a reader go."""
        self._readers.leave(subscription)

    def close(self, why: Close) -> None:
        """Send everybody away."""
        self._owner_id = None
        self._readers.close(why)

    def committed(self, state: ChatState, appended: tuple[Message, ...] | None) -> None:
        """Take over what this process wrote, or read if that is not all.

        Args:
            state: What was written.
            appended: The messages that were written with it; None if they are not known.
        """
        head = self.head
        if head is None:
            self._is_stale = True
            return
        is_news = state.snapshot_version > head.version
        if is_news and not self._broadcast.continued(state, appended):
            self.suspect()

    def on_notice(self, version: int) -> None:
        """Read if the chat has moved beyond what is known here."""
        if self.head is None or version > self.head.version:
            self.suspect()

    def suspect(self) -> None:
        """Read the chat, because it may have moved."""
        self._is_stale = True
        if self.head is not None and not self._is_syncing:
            self._is_syncing = True
            self._ports.spawn(self._sync())

    def shown(self, part: LivePart) -> None:
        """Pass on a part that this process shows."""
        self._broadcast.shown(part)

    def relayed(self, episode: tuple[int, int], seq: int, body: bytes) -> None:
        """Pass on a part that the owner shows."""
        if self._broadcast.relayed(episode, seq, body):
            self.suspect()

    async def _sync(self) -> None:
        """Read until nothing new is suspected."""
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
            # Its readers would wait for ever; elsewhere they may be told.
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
        """Read the newest messages once more, because somebody needs older ones."""
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
        """Read the chat for the first time, once for all who wait for it."""
        async with self._loading:
            return self.head is not None or await self._load(position) is not None

    async def _load(self, position: Position, reader: Reader | None = None) -> FollowedChat | None:
        """Read the chat for the first time; who calls this holds the lock."""
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
        """Bring a reader to the present version; return whether it is live then."""
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
        """Read the version at which a reader already was, elsewhere, if there is such a one."""
        read = await self._read(now.version, with_deletions=False)
        if read is None or subscription.position.target > read.state.snapshot_version:
            # No version of this chat was ever called that.
            subscription.close(Close.RESYNC)
            self.leave(subscription)
            return
        self.suspect()
        if not has_gap(read):
            self._take(read, now.version)
