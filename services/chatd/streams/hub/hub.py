"""The hub of one chat: follows the committed chat once for all its readers in this process.

A reader is either live, at exactly the version of the hub, or it catches up: the messages that it
misses are read for it, as fast as it consumes them, until it is at the version of the hub. A step
of the hub is encoded once and queued for all live readers. A commit of this process is applied
without a read if it continues the hub's version; any other change is read, once.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

from chatd.chats.domain.chat import ChatState, Message
from chatd.content.domain.messages import Visibility
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.streams.engine.live import LivePart
from chatd.streams.hub.readers import CatchUp, Readers
from chatd.streams.hub.reads import Reads, read_patiently
from chatd.streams.hub.timeline import (
    ROWS_MAX,
    EarlyParts,
    Row,
    Snapshot,
    Timeline,
    has_gap,
    is_all_known,
    row_of,
    snapshot_of,
)
from chatd.streams.rpc import wire
from chatd.streams.rpc.drops import Drops
from chatd.streams.rpc.position import Position
from chatd.streams.rpc.subscription import Close, Subscription
from chatd.streams.store.chat_reads import ChatReadRequest, FollowedChat
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

# Returns the live parts of an episode that this process runs.
LiveParts = Callable[[ChatId, int, int], tuple[LivePart, ...]]


class Broadcast:
    """Advances a timeline and sends the events to its readers; nothing here blocks or reads."""

    def __init__(
        self,
        timeline: Timeline,
        readers: Readers,
        *,
        live_parts: LiveParts,
        retarget: Callable[[ChatState], None],
    ) -> None:
        self._timeline = timeline
        self._readers = readers
        self._live_parts = live_parts
        self._retarget = retarget
        self._early = EarlyParts()

    def continued(self, state: ChatState, appended: tuple[Message, ...] | None) -> bool:
        """Apply a commit of this process; return False if the chat has to be read instead."""
        head = self._timeline.head
        if head is None or not is_all_known(head.state, state, appended):
            return False
        rows = [
            row_of(self._timeline.chat_id, message)
            for message in appended or ()
            if message.visibility is not Visibility.MODEL
        ]
        self._advance(Snapshot(state, queue=head.queue, ended=head.ended), rows)
        return True

    def apply_read(self, read: FollowedChat, after: int) -> list[Subscription]:
        """Apply a read; its messages are never newer than its state.

        Returns:
            Readers that have to catch up by themselves: their messages are void, or too many are
                missing.
        """
        timeline, head, now = self._timeline, self._timeline.head, snapshot_of(read)
        if head is not None and now.version <= head.version:
            return []
        behind: list[Subscription] = []
        rows = timeline.learn(read, after)
        if head is None:
            self._settle(now)
        elif timeline.is_void_since(head.version):
            behind = self._readers.fall_behind(timeline.live_position)
            self._settle(now)
        else:
            self._advance(now, [row for row in rows if row.revision > head.version])
        return behind

    def shown(self, part: LivePart) -> None:
        """Forward a part that this process published."""
        head = self._timeline.head
        if head is None or (part.history_version, part.generation_attempt) != head.episode:
            return  # The read that opens the episode finds its parts in `live_parts`.
        if part.seq > self._timeline.log.last_seq:
            self._add_part(part.seq, wire.part_body(part))

    def relayed(self, episode: tuple[int, int], seq: int, body: bytes) -> bool:
        """Forward a part that the owner published; one of a future episode waits for its state.

        Returns:
            Whether it is the first part received of its episode.
        """
        head = self._timeline.head
        if head is None or episode > head.episode:
            return self._early.add(episode, seq, body)
        if episode == head.episode and seq > self._timeline.log.last_seq:
            self._add_part(seq, body)
        return False

    def _add_part(self, seq: int, body: bytes) -> None:
        self._readers.push(self._timeline.add_part(seq, body), seq)

    def _advance(self, now: Snapshot, rows: Sequence[Row]) -> None:
        """Advance to a version; `rows` are all messages that changed."""
        events = self._timeline.events_to(now, rows) if self._readers.has_live else []
        self._timeline.rows.add(rows)
        self._settle(now, events)

    def _settle(self, now: Snapshot, events: list[bytes] | None = None) -> None:
        """Set the current version, send its events, and start with the open episode's parts."""
        timeline = self._timeline
        is_other_episode = timeline.settle(now)
        if events:
            self._readers.push(events)
        if is_other_episode:
            self._readers.enter_episode()
            for part in self._live_parts(timeline.chat_id, *now.episode):
                self.shown(part)
        self._retarget(now.state)
        for seq, body in self._early.pop(now.episode):
            self.relayed(now.episode, seq, body)


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
        broadcast: Sends events to the live readers.
    """

    def __init__(self, chat_id: ChatId, ports: HubPorts) -> None:
        self.chat_id = chat_id
        self.expected = 0
        self._ports = ports
        self._owner_id: OwnerId | None = None  # Set once the chat was read.
        self._timeline = Timeline(chat_id)
        self._readers = Readers(chat_id, ports.drops)
        self._catch_up_sender = CatchUp(self._timeline, ports.reads, self._deepen)
        self.broadcast = Broadcast(
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
        is_newer = state.snapshot_version > head.version
        if is_newer and not self.broadcast.continued(state, appended):
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

    def relayed(self, episode: tuple[int, int], seq: int, body: bytes) -> None:
        """Forward a part that the chat's owner published."""
        if self.broadcast.relayed(episode, seq, body):
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
                self._apply_read(read, after)
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

    def _apply_read(self, read: FollowedChat, after: int) -> None:
        for subscription in self.broadcast.apply_read(read, after):
            self.join(subscription)

    async def _deepen(self) -> None:
        """Read the newest messages again, because a reader needs older ones."""
        read = await self._read(0, with_deletions=True)
        if read is None:
            self.close(Close.NOT_FOUND)
            return
        self._apply_read(read, 0)
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
            self._apply_read(read, after)
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
            self._apply_read(read, now.version)
