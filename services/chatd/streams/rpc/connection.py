"""The server's end of one shared stream: many subscriptions, one writer.

A few frames leave at once; while there are many, what is put in line within some milliseconds
leaves together, since a frame costs both ends more than what is in it; when there is something for
very many, within some more. Frames are small and filled
in turns, so that nobody's long history holds up the others. The writer alone waits for the other
end; if that reads too slowly the lines grow to their bounds and their readers are sent away.
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
# Tags, lengths and ids around one delivery.
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
    """Return how long to wait behind so many deliveries, so that the next leave together."""
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
        """Learn that a subscription has something to send."""
        self._woken[subscription] = None
        self._something.set()

    def answer(self, answer: TunnelledAnswer) -> None:
        """Send the answer to a call that this stream carried."""
        self._answers.append(answer)
        self._something.set()

    def add(self, entry: Entry) -> None:
        """Carry one more subscription."""
        self._entries[entry.id] = entry
        self._ids[entry.subscription] = entry.id
        self._something.set()

    def find(self, subscription_id: int) -> Entry | None:
        """Return a subscription that is carried."""
        return self._entries.get(subscription_id)

    def remove(self, subscription_id: int) -> None:
        """Carry a subscription no more."""
        entry = self._entries.pop(subscription_id, None)
        if entry is not None:
            del self._ids[entry.subscription]
            self._woken.pop(entry.subscription, None)
            entry.leave()

    def forget(self, entry: Entry) -> None:
        """Let go of a subscription that is not carried after all."""
        self._woken.pop(entry.subscription, None)
        entry.leave()

    def close(self) -> None:
        """Let go of all subscriptions."""
        for subscription_id in list(self._entries):
            self.remove(subscription_id)

    async def write_all(self, write: Write) -> None:
        """Write frames for as long as the task lives; the first one says that the line stands."""
        await write(HEARTBEAT)
        while True:
            await self._something.wait()
            self._something.clear()
            self._delivered = 0
            while (frame := self._next_frame()) is not None:
                self._is_idle = False
                await write(frame)
            if self._delivered:
                await self._pace(pause_s(self._delivered))
            if self._is_beat_due and self._is_idle:
                await write(HEARTBEAT)
            self._is_beat_due = False

    async def _pace(self, pause_s: float) -> None:
        """Wait if there was more to write lately than a few frames and one for each pause."""
        now_s = self._clock.monotonic()
        earliest_s = now_s - FLUSHES_AT_ONCE * FLUSH_PAUSE_S
        self._paced_until_s = max(self._paced_until_s, earliest_s) + pause_s
        if self._paced_until_s > now_s:
            await self._clock.sleep(self._paced_until_s - now_s)

    async def beat(self) -> None:
        """Have every silence broken, so that the other end knows a dead line from a quiet one."""
        while True:
            self._is_idle = True
            await self._clock.sleep(HEARTBEAT_S)
            self._is_beat_due = True
            self._something.set()

    def _next_frame(self) -> bytes | None:
        """Return the next frame; every subscription gets a share of it, in turns."""
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
            if entry.subscription.has_news:
                self._ready.append(entry.id)
            elif entry.subscription.closed is not None:
                self.remove(entry.id)
        return frame.SerializeToString()

    def _put_answers(self, frame: EncodedConnectResponse) -> int:
        """Put as many answers into a frame as it holds, but one at least; return their bytes."""
        size = 0
        while self._answers and (not size or size < LIMITS.frame_bytes_max // 2):
            answer = self._answers.popleft()
            frame.answers.append(answer)
            size += len(answer.response) + OVERHEAD_BYTES
            self._delivered += 1
        return size

    def _deliver(self, frame: EncodedConnectResponse, entry: Entry, left_bytes: int) -> int | None:
        """Put a share of a subscription into the frame; None if it must wait for the next."""
        subscription = entry.subscription
        first_bytes = subscription.next_bytes + OVERHEAD_BYTES
        if first_bytes > left_bytes and (frame.deliveries or frame.answers):
            return None
        events = subscription.take(min(QUANTUM_BYTES, left_bytes))
        delivery = frame.deliveries.add(subscription_id=entry.id)
        if entry.is_feed:
            delivery.feed_events.extend(events)
        else:
            delivery.events.extend(events)
        if subscription.closed is not None and not subscription.has_news:
            delivery.closed.CopyFrom(Closed(reason=subscription.closed.value))
        return sum(map(len, events)) + OVERHEAD_BYTES
