"""The server side of one shared stream: many subscriptions, one writer.

A few frames are written at once. Under load, events queued within some milliseconds are written
together, since a frame costs both ends more than its content; the pause grows with the number of
deliveries. Frames are small and filled round-robin, so that a long history does not delay the other
subscriptions. Only the writer waits for the client; if the client reads too slowly, the queues grow
to their limits and their subscriptions are closed.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chatd.streams.rpc.subscription import Subscription
from parley.api.chat.v1.frame_pb2 import EncodedConnectResponse
from parley.api.chat.v1.stream_service_pb2 import Closed, TunnelledAnswer
from parley.clock import Clock
from parley.rpc import LIMITS

HEARTBEAT_S = 10.0
FLUSH_PAUSE_S = 0.008
FLUSH_PAUSE_S_MAX = 0.024
FLUSH_PAUSE_S_PER_DELIVERY = 0.001
FLUSHES_AT_ONCE = 10
HEARTBEAT = b""  # A frame without deliveries.
QUANTUM_BYTES = 32 * 1024
# Protobuf tags, lengths and ids around one delivery.
OVERHEAD_BYTES = 32

Write = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True)
class Entry:
    """One subscription on the stream."""

    id: int
    subscription: Subscription
    leave: Callable[[], None]
    is_feed: bool = False


def pause_s(deliveries: int) -> float:
    """Return the pause after so many deliveries, so that the next ones are written together."""
    return min(max(FLUSH_PAUSE_S, deliveries * FLUSH_PAUSE_S_PER_DELIVERY), FLUSH_PAUSE_S_MAX)


class Connection:
    """The subscriptions of one stream."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[int, Entry] = {}
        self._ids: dict[Subscription, int] = {}
        self._ready: deque[int] = deque()
        self._woken: dict[Subscription, None] = {}
        self._answers: deque[TunnelledAnswer] = deque()
        self._something = asyncio.Event()
        self._is_idle = True
        self._is_beat_due = False
        self._paced_until_s = float("-inf")
        self._delivered = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, subscription_id: int) -> bool:
        return subscription_id in self._entries

    def wake(self, subscription: Subscription) -> None:
        """Mark a subscription as having events to send."""
        self._woken[subscription] = None
        self._something.set()

    def answer(self, answer: TunnelledAnswer) -> None:
        """Send the response of a tunnelled call."""
        self._answers.append(answer)
        self._something.set()

    def add(self, entry: Entry) -> None:
        """Add a subscription to the stream."""
        self._entries[entry.id] = entry
        self._ids[entry.subscription] = entry.id
        self._something.set()

    def find(self, subscription_id: int) -> Entry | None:
        """Return a subscription of the stream."""
        return self._entries.get(subscription_id)

    def remove(self, subscription_id: int) -> None:
        """Remove a subscription from the stream."""
        entry = self._entries.pop(subscription_id, None)
        if entry is not None:
            del self._ids[entry.subscription]
            self._woken.pop(entry.subscription, None)
            entry.leave()

    def forget(self, entry: Entry) -> None:
        """Release a subscription that was closed before it was added."""
        self._woken.pop(entry.subscription, None)
        entry.leave()

    def close(self) -> None:
        """Release all subscriptions."""
        for subscription_id in list(self._entries):
            self.remove(subscription_id)

    async def write_all(self, write: Write) -> None:
        """Write frames until cancelled; the first one, a heartbeat, confirms the stream."""
        await write(HEARTBEAT)
        while True:
            await self._something.wait()
            self._something.clear()
            self._delivered = 0
            while (frame := self._next_frame()) is not None:
                self._is_idle = False
                await write(frame)
            if self._delivered:
                await self._pause(pause_s(self._delivered))
            if self._is_beat_due and self._is_idle:
                await write(HEARTBEAT)
            self._is_beat_due = False

    async def _pause(self, pause_s: float) -> None:
        """Sleep if more was written recently than a few frames and one per pause."""
        now_s = self._clock.monotonic()
        earliest_s = now_s - FLUSHES_AT_ONCE * FLUSH_PAUSE_S
        self._paced_until_s = max(self._paced_until_s, earliest_s) + pause_s
        if self._paced_until_s > now_s:
            await self._clock.sleep(self._paced_until_s - now_s)

    async def send_heartbeats(self) -> None:
        """Request a heartbeat after each idle period, so that clients detect a dead stream."""
        while True:
            self._is_idle = True
            await self._clock.sleep(HEARTBEAT_S)
            self._is_beat_due = True
            self._something.set()

    def _next_frame(self) -> bytes | None:
        """Return the next frame, filled round-robin from the subscriptions; None if empty."""
        for subscription in list(self._woken):
            subscription_id = self._ids.get(subscription)
            if subscription_id is not None:  # Else it is being opened, and added soon.
                del self._woken[subscription]
                self._ready.append(subscription_id)
        if not self._ready and not self._answers:
            return None
        frame = EncodedConnectResponse()
        left_bytes = LIMITS.frame_bytes_max - self._put_answers(frame)
        while self._ready:
            entry = self._entries.get(self._ready[0])
            if entry is None:
                self._ready.popleft()
                continue
            size = self._deliver(frame, entry, left_bytes)
            if size is None:
                break
            left_bytes -= size
            self._delivered += 1
            self._ready.popleft()
            if entry.subscription.is_ready:
                self._ready.append(entry.id)
            elif entry.subscription.closed is not None:
                self.remove(entry.id)
        return frame.SerializeToString()

    def _put_answers(self, frame: EncodedConnectResponse) -> int:
        """Put as many responses into a frame as fit, but at least one; return their bytes."""
        size = 0
        while self._answers and (not size or size < LIMITS.frame_bytes_max // 2):
            answer = self._answers.popleft()
            frame.answers.append(answer)
            size += len(answer.response) + OVERHEAD_BYTES
            self._delivered += 1
        return size

    def _deliver(self, frame: EncodedConnectResponse, entry: Entry, left_bytes: int) -> int | None:
        """Put events of a subscription into the frame; None if they must wait for the next."""
        subscription = entry.subscription
        first_bytes = subscription.next_bytes + OVERHEAD_BYTES
        if first_bytes > left_bytes and (frame.deliveries or frame.answers):
            return None
        events = subscription.next_events(min(QUANTUM_BYTES, left_bytes))
        delivery = frame.deliveries.add(subscription_id=entry.id)
        if entry.is_feed:
            delivery.feed_events.extend(events)
        else:
            delivery.events.extend(events)
        if subscription.closed is not None and not subscription.is_ready:
            delivery.closed.CopyFrom(Closed(reason=subscription.closed.value))
        return sum(map(len, events)) + OVERHEAD_BYTES
