"""One chat's hub: follows the committed chat once and tells all its readers in this process.

Readers are either live, and then stand exactly where the hub stands, or they catch up: what they
miss is read for each of them, as fast as they take it, until they stand where the hub stands. A
step of the hub is encoded once and put in line for everybody live. What this process commits is
taken over without a read if it continues the hub's version; whatever else happens is read, once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from chatd.domain.chat import ChatId, ChatState, Message, Visibility
from chatd.engine.live import LivePart
from chatd.rpc.streams import wire
from chatd.rpc.streams.drops import Drops
from chatd.rpc.streams.episode import EpisodeLog
from chatd.rpc.streams.position import Position, mark_of
from chatd.rpc.streams.reads import (
    Reads,
    has_gap,
    is_all_known,
    read_patiently,
    snapshot_of,
)
from chatd.rpc.streams.rows import Row, Rows, row_of
from chatd.rpc.streams.steps import Snapshot, at_row, settled, step_events
from chatd.rpc.streams.subscription import WAITING_BYTES_MAX, Close, Subscription
from chatd.store.following import Following
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

STRETCH = 32
RESET_ROWS_MAX = 200
FUTURE_PARTS_MAX = 1024


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
    live_parts: Callable[[ChatId, int, int], tuple[LivePart, ...]]
    retarget: Callable[[ChatState], None]
    spawn: Callable[[Coroutine[object, object, None]], object]
    drops: Drops
    clock: Clock


class Hub:
    """Follows one chat for as long as anybody reads it here."""

    def __init__(self, chat_id: ChatId, ports: HubPorts) -> None:
        self.chat_id = chat_id
        self.head: Snapshot | None = None
        self._ports = ports
        self._mark = mark_of(chat_id)
        self._rows = Rows()
        self._deleted_version = 0
        self._position = Position()
        self._parts_prefix = ""
        self._log = EpisodeLog((0, 0))
        self._live: dict[Subscription, None] = {}
        self._joining: dict[Subscription, None] = {}
        self._ahead: dict[Subscription, int] = {}
        self._is_deep = False  # Whether the newest messages are kept, as many as may be.
        self._is_stale = False
        self._is_syncing = False
        self._loading = asyncio.Lock()
        self._future: tuple[tuple[int, int], list[tuple[int, bytes]]] = ((0, 0), [])

    @property
    def is_unused(self) -> bool:
        """Whether nobody reads here."""
        return not self._live and not self._joining

    @property
    def last_seq(self) -> int:
        """The last live part of the open episode that is known here."""
        return self._log.last_seq

    @property
    def _standing(self) -> Position:
        """Where everybody live stands; parts are too many to move the position for each."""
        return replace(self._position, seq=self._log.last_seq)

    def join(self, subscription: Subscription) -> None:
        """Take a reader in; it is sent what it misses, then what happens."""
        self._joining[subscription] = None
        self._ports.spawn(self._catch_up(subscription))

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

    def committed(self, state: ChatState, appended: tuple[Message, ...] | None) -> None:
        """Take over what this process wrote, or read if that is not all.

        Args:
            state: What was written.
            appended: The messages that were written with it; None if they are not known.
        """
        head = self.head
        if head is None:
            self._is_stale = True
        elif state.snapshot_version <= head.version:
            return
        elif is_all_known(head.state, state, appended):
            rows = [
                row_of(self.chat_id, message)
                for message in appended or ()
                if message.visibility is not Visibility.MODEL
            ]
            self._advance(Snapshot(state, queue=head.queue), rows)
        else:
            self.suspect()

    def heard(self, version: int) -> None:
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
        episode = (part.history_version, part.generation_attempt)
        if self.head is None or episode != self.head.episode:
            return  # The read that brings the episode finds its parts where they are kept.
        if part.seq > self._log.last_seq:
            self._add_part(part.seq, wire.part_body(part))

    def relayed(self, episode: tuple[int, int], seq: int, body: bytes) -> None:
        """Pass on a part that the owner shows; one of a future episode waits for its state."""
        if self.head is not None and episode == self.head.episode:
            if seq > self._log.last_seq:
                self._add_part(seq, body)
        elif self.head is None or episode > self.head.episode:
            if self._future[0] != episode:
                self._future = (episode, [])
                self.suspect()
            if len(self._future[1]) < FUTURE_PARTS_MAX:
                self._future[1].append((seq, body))

    def _advance(self, now: Snapshot, rows: Sequence[Row]) -> None:
        """Move to a version, of which `rows` are all the changed messages."""
        seen = self._standing
        events = step_events(seen, now, [(row.id, row.body) for row in rows])
        self._rows.add(rows)
        self._settle(now, settled(seen, now))
        if self._live:
            self._push([self._event(at, body) for at, body in events])
        self._enter_episode()

    def _settle(self, now: Snapshot, position: Position) -> None:
        self.head = now
        self._position = position
        self._parts_prefix = f"{self._mark}{position.before_seq}"

    def _event(self, at: Position, body: bytes) -> bytes:
        return wire.with_cursor(f"{self._mark}{at}", body)

    def _enter_episode(self) -> None:
        """Begin with the parts of the open episode, of which some may be there already."""
        head = self.head
        assert head is not None
        if self._log.key != head.episode:
            self._log = EpisodeLog(head.episode)
            self._ahead.clear()
            for part in self._ports.live_parts(self.chat_id, *head.episode):
                self.shown(part)
        self._ports.retarget(head.state)
        episode, parts = self._future
        if episode <= head.episode:
            self._future = ((0, 0), [])
            for seq, body in parts:
                self.relayed(episode, seq, body)

    def _add_part(self, seq: int, body: bytes) -> None:
        log = self._log
        is_next = log.add(seq, body)
        events = []
        if not is_next:
            events.append(
                wire.with_cursor(f"{self._parts_prefix}{seq - 1}", wire.PREVIEW_TRUNCATED)
            )
        events.append(wire.with_cursor(f"{self._parts_prefix}{seq}", body))
        self._push(events, seq)

    def _push(self, events: list[bytes], seq: int = 0) -> None:
        lost: list[Subscription] = []
        for subscription in self._live:
            if self._ahead and seq and seq <= self._ahead.get(subscription, 0):
                continue
            for event in events:
                if not subscription.put(event):
                    lost.append(subscription)
                    break
        for subscription in lost:
            self._lose(subscription, len(events))

    def _lose(self, subscription: Subscription, events: int) -> None:
        dropped = subscription.close(Close.RESYNC, drop=True)
        self.leave(subscription)
        self._ports.drops.note(self.chat_id, dropped + events)

    async def _sync(self) -> None:
        """Read until nothing new is suspected."""
        try:
            while self._is_stale and not self.is_unused:
                self._is_stale = False
                head = self.head
                assert head is not None
                read = await self._read(head.version, with_deletions=False)
                if read is not None and has_gap(read):
                    read = await self._read(0, with_deletions=True)
                    after = 0
                else:
                    after = head.version
                if read is None:
                    self.close(Close.NOT_FOUND)
                    return
                self._take(read, after)
        except DatabaseUnavailable:
            self.close(Close.INTERNAL)
        finally:
            self._is_syncing = False

    async def _read(self, after: int, *, with_deletions: bool) -> Following | None:
        ports = self._ports
        return await read_patiently(
            ports.reads, ports.clock, self.chat_id, after, with_deletions=with_deletions
        )

    def _take(self, read: Following, after: int) -> None:
        """Take over what was read; what is in it is never newer than its state."""
        head, now = self.head, snapshot_of(read)
        if head is not None and now.version <= head.version:
            return
        rows = [
            row_of(self.chat_id, each)
            for each in read.messages
            # One statement gives no newer ones; if a read did, they come with their own state.
            if not each.is_deleted and each.revision <= now.version
        ]
        self._deleted_version = max(self._deleted_version, read.deleted_version or 0)
        if head is None or after == 0:
            self._rebuild(read, rows, after)
        if head is None:
            self._settle(now, settled(Position(), now))
            self._enter_episode()
        elif self._deleted_version > head.version or self._rows.floor > head.version:
            self._begin_anew(now)
        else:
            self._advance(now, [row for row in rows if row.revision > head.version])

    def _rebuild(self, read: Following, rows: Sequence[Row], after: int) -> None:
        """Keep what was read in the place of what was kept, but for what is newer."""
        newer = [row for row in self._rows if row.revision > read.state.snapshot_version]
        floor = after if read.is_complete or not rows else rows[0].revision
        self._rows = Rows(floor)
        self._rows.add(rows)
        self._rows.add(newer)
        self._is_deep = after == 0

    async def _deepen(self) -> None:
        """Read the newest messages once more, because somebody needs older ones."""
        read = await self._read(0, with_deletions=True)
        if read is None:
            self.close(Close.NOT_FOUND)
            return
        self._take(read, 0)
        if not self._is_deep and self._deleted_version <= read.state.snapshot_version:
            rows = [row_of(self.chat_id, each) for each in read.messages]
            self._rebuild(read, rows, 0)

    def _begin_anew(self, now: Snapshot) -> None:
        """Let every reader catch up by itself: what they have is void, or too much is missing."""
        live, self._live = self._live, {}
        seen = self._standing
        self._settle(now, settled(seen, now))
        for subscription in live:
            subscription.position = replace(
                seen, seq=max(seen.seq, self._ahead.pop(subscription, 0))
            )
            self.join(subscription)
        self._enter_episode()

    async def _catch_up(self, subscription: Subscription) -> None:
        try:
            if self.head is None and not await self._is_loaded(subscription.position):
                self.close(Close.NOT_FOUND)
                return
            while subscription in self._joining:
                if await self._caught_up(subscription):
                    return
        except DatabaseUnavailable:
            subscription.close(Close.INTERNAL)
            self.leave(subscription)

    async def _is_loaded(self, position: Position) -> bool:
        """Read the chat for the first time, once for all who wait for it."""
        async with self._loading:
            while self.head is None:
                self._is_stale = False
                after = position.rows_behind[1]
                read = await self._read(after, with_deletions=True)
                if read is None:
                    return False
                self._take(read, after)
        if self._is_stale:
            self.suspect()
        return True

    async def _caught_up(self, subscription: Subscription) -> bool:
        """Bring a reader to the present version; return whether it is live then."""
        now = self.head
        assert now is not None
        seen = subscription.position
        if seen.target > now.version:
            read = await self._read(now.version, with_deletions=False)
            if read is None or seen.target > read.state.snapshot_version:
                # No version of this chat was ever called that.
                subscription.close(Close.RESYNC)
                self.leave(subscription)
                return False
            self.suspect()
            self._take_or_suspect(read, now.version)
            return False
        if seen.target < now.version or not seen.is_between_steps:
            await self._send_step(subscription, now)
            return False
        blocked_bytes = self._sent_parts(subscription)
        if blocked_bytes is None:
            return True
        await self._made_room(subscription, blocked_bytes)
        return False

    def _take_or_suspect(self, read: Following, after: int) -> None:
        if not has_gap(read):
            self._take(read, after)

    async def _send_step(self, subscription: Subscription, now: Snapshot) -> None:
        """Send everything between a reader and a version, as fast as the reader takes it."""
        seen = subscription.position
        is_void = self._deleted_version > seen.target > 0
        if not self._is_deep and (is_void or seen.rows_behind[1] < self._rows.floor):
            await self._deepen()
        if is_void:
            rows = [row for row in self._rows if row.revision <= now.version]
            is_whole = self._rows.floor == 0 and len(rows) <= RESET_ROWS_MAX
            rows = rows[-RESET_ROWS_MAX:]
            first_id = rows[0].id if rows else 1
            seen = seen.voided(now.version, first_id)
            reset = wire.history_reset_body(truncated=not is_whole)
            await self._send(subscription, seen, reset)
        held: Row | None = None
        async for row in self._missing(seen, now):
            if held is not None:
                await self._send(subscription, at_row(seen, now, held.id), held.body)
            if subscription.closed is not None:
                return
            held = row
        last = [] if held is None else [(held.id, held.body)]
        for at, body in step_events(seen, now, last):
            await self._send(subscription, at, body)
        subscription.position = settled(seen, now)

    async def _missing(self, seen: Position, now: Snapshot) -> AsyncIterator[Row]:
        behind_id, after = seen.rows_behind
        if after >= self._rows.floor:
            for row in list(self._rows.behind(behind_id, after)):
                if row.revision <= now.version:
                    yield row
            return
        while True:
            messages = await self._ports.reads.stretch(
                self.chat_id, behind_id=behind_id, after=after, upto=now.version, limit=STRETCH
            )
            for message in messages:
                yield row_of(self.chat_id, message)
            if len(messages) < STRETCH:
                return
            behind_id = messages[-1].id

    async def _send(self, subscription: Subscription, at: Position, body: bytes) -> None:
        event = self._event(at, body)
        await self._made_room(subscription, len(event))
        subscription.position = at
        subscription.put(event)

    async def _made_room(self, subscription: Subscription, size: int) -> None:
        """Wait until a reader has taken most of what is on its way."""
        while subscription.closed is None and not _has_room(subscription, size):
            room = asyncio.Event()
            subscription.when_room(room.set)
            await room.wait()

    def _sent_parts(self, subscription: Subscription) -> int | None:
        """Send the parts of the open episode that a reader misses; then it is live.

        Returns:
            None, or the bytes of the part for which there was no room yet.
        """
        log, seen = self._log, subscription.position
        if seen.seq < log.first_seq - 1:
            seen = replace(seen, seq=log.first_seq - 1)
            subscription.put(self._event(seen, wire.PREVIEW_TRUNCATED))
        for seq, body in log.behind(seen.seq):
            event = wire.with_cursor(f"{self._parts_prefix}{seq}", body)
            if not _has_room(subscription, len(event)):
                subscription.position = seen
                return len(event)
            subscription.put(event)
            seen = replace(seen, seq=seq)
        del self._joining[subscription]
        self._live[subscription] = None
        if seen.seq > log.last_seq:
            self._ahead[subscription] = seen.seq
        return None


def _has_room(subscription: Subscription, size: int) -> bool:
    if not subscription.waiting_bytes and not subscription.unconfirmed_bytes:
        return True
    return subscription.has_room and subscription.waiting_bytes + size <= WAITING_BYTES_MAX
