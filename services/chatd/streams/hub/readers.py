"""The readers of one chat: live readers are sent events at once, the others catch up first."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from msgspec.structs import replace

from chatd.primitives.domain.ids import ChatId
from chatd.streams.hub.reads import Reads
from chatd.streams.hub.timeline import Row, Snapshot, Timeline, at_row, row_of, settled, step_events
from chatd.streams.rpc import wire
from chatd.streams.rpc.drops import Drops
from chatd.streams.rpc.position import Position
from chatd.streams.rpc.subscription import WAITING_BYTES_MAX, Close, Subscription

PAGE_ROWS = 32
RESET_ROWS_MAX = 200


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


class CatchUp:
    """Sends readers the events between their position and the head of a timeline.

    Args:
        timeline: The timeline to catch up with.
        reads: Reads messages that the timeline no longer keeps.
        deepen: Makes the timeline keep as many messages as it may.
    """

    def __init__(
        self, timeline: Timeline, reads: Reads, deepen: Callable[[], Awaitable[None]]
    ) -> None:
        self._timeline = timeline
        self._reads = reads
        self._deepen = deepen

    async def send_step(self, subscription: Subscription, now: Snapshot) -> None:
        """Send all events between a reader's position and a version, except live parts.

        Raises:
            DatabaseUnavailable: Missing messages cannot be read.
        """
        timeline, seen = self._timeline, subscription.position
        is_void = timeline.deleted_version > seen.target > 0
        is_missing = seen.rows_behind[1] < timeline.rows.floor
        if not timeline.is_deep and (is_void or is_missing):
            await self._deepen()
        if is_void:
            seen = await self._reset(subscription, now)
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

    def send_parts(self, subscription: Subscription) -> int | None:
        """Send the parts of the open episode that a reader misses.

        Returns:
            None if all were sent, else the size of the part that did not fit into the buffer.
        """
        timeline, seen = self._timeline, subscription.position
        log = timeline.log
        if seen.seq < log.first_seq - 1:
            seen = replace(seen, seq=log.first_seq - 1)
            subscription.put(timeline.event(seen, wire.PREVIEW_TRUNCATED))
        for seq, body in log.behind(seen.seq):
            event = timeline.part_event(seq, body)
            if not _has_room(subscription, len(event)):
                subscription.position = seen
                return len(event)
            subscription.put(event)
            seen = replace(seen, seq=seq)
        subscription.position = seen
        return None

    async def made_room(self, subscription: Subscription, size: int) -> None:
        """Wait until the reader's buffer has space for `size` bytes."""
        while subscription.closed is None and not _has_room(subscription, size):
            room = asyncio.Event()
            subscription.when_room(room.set)
            await room.wait()

    async def _reset(self, subscription: Subscription, now: Snapshot) -> Position:
        """Send a history reset; return the position from which the messages follow."""
        timeline = self._timeline
        rows = [row for row in timeline.rows if row.revision <= now.version]
        is_whole = timeline.rows.floor == 0 and len(rows) <= RESET_ROWS_MAX
        first_id = rows[-RESET_ROWS_MAX:][0].id if rows else 1
        seen = subscription.position.voided(now.version, first_id)
        await self._send(subscription, seen, wire.history_reset_body(truncated=not is_whole))
        return seen

    async def _missing(self, seen: Position, now: Snapshot) -> AsyncIterator[Row]:
        timeline = self._timeline
        behind_id, after = seen.rows_behind
        if after >= timeline.rows.floor:
            for row in list(timeline.rows.behind(behind_id, after)):
                if row.revision <= now.version:
                    yield row
            return
        while True:
            messages = await self._reads.read_page(
                timeline.chat_id,
                behind_id=behind_id,
                after=after,
                upto=now.version,
                limit=PAGE_ROWS,
            )
            for message in messages:
                yield row_of(timeline.chat_id, message)
            if len(messages) < PAGE_ROWS:
                return
            behind_id = messages[-1].id

    async def _send(self, subscription: Subscription, at: Position, body: bytes) -> None:
        event = self._timeline.event(at, body)
        await self.made_room(subscription, len(event))
        subscription.position = at
        subscription.put(event)


def _has_room(subscription: Subscription, size: int) -> bool:
    if not subscription.waiting_bytes and not subscription.unconfirmed_bytes:
        return True
    return subscription.has_room and subscription.waiting_bytes + size <= WAITING_BYTES_MAX
