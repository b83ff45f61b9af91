"""The SSE response: one client, its queue of frames, and everything that can end it.

One task feeds frames from the subscription into the queue, this one writes them out. A client that
reads slower than its chat speaks fills the queue; while it is full the feeder waits, and with it
chatd. A client that does not catch up in time is told to begin anew. Heartbeats, the end of the
process, the age of the stream, the end of the sign-in and the client's own leaving are one small
task each.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, assert_never

from starlette.types import Receive, Scope, Send

from gateway import sse
from gateway.chat_events import Ended, Ending, Subscription
from gateway.convert import event_to_json
from gateway.frame_queue import FrameQueue
from gateway.waiting import is_set_within
from parley.api.chat.v1 import event_pb2
from parley.clock import Clock

HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
HEARTBEAT_S = 15.0
LIFETIME_S = 3600.0
STALL_S = 10.0
QUEUE_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How much one client may leave unread, for how long, and how long it is served."""

    queue_bytes_max: int = QUEUE_BYTES_MAX
    stall_s: float = STALL_S
    heartbeat_s: float = HEARTBEAT_S
    lifetime_s: float = LIFETIME_S


class EventStream:
    """An ASGI response that writes the frames of one chat until something ends it."""

    def __init__(
        self,
        subscription: Subscription,
        *,
        chat_id: str,
        sign_in: AbstractContextManager[asyncio.Event],
        clock: Clock,
        draining: asyncio.Event,
        limits: StreamLimits,
    ) -> None:
        """Serve a client once this is called.

        Args:
            subscription: What happens in the chat.
            chat_id: The chat.
            sign_in: Gives an event that is set when the client's sign-in is over.
            clock: Tells when to beat and when to end.
            draining: Set when the process stops.
            limits: How much may wait, and for how long.
        """
        self._subscription = subscription
        self._chat_id = chat_id
        self._sign_in = sign_in
        self._clock = clock
        self._draining = draining
        self._limits = limits
        self._queue = FrameQueue(limits.queue_bytes_max)
        self._sent_at = clock.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the client."""
        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            self._queue.offer(sse.OPENING)
            with self._sign_in as is_over:
                await self._serve(receive, send, is_over)
        finally:
            self._subscription.close()

    async def _serve(self, receive: Receive, send: Send, is_over: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as tasks:
            helpers = [
                tasks.create_task(work)
                for work in (
                    self._feed(),
                    self._beat(),
                    self._end_with_process(),
                    self._end_with_age(),
                    self._end_with_sign_in(is_over),
                    self._end_with_client(receive),
                )
            ]
            await self._write(send)
            for helper in helpers:
                helper.cancel()

    async def _write(self, send: Send) -> None:
        has_more = True
        while has_more:
            frames, has_more = await self._queue.take()
            self._sent_at = self._clock.monotonic()
            message = {"type": "http.response.body", "body": frames, "more_body": has_more}
            await send(message)

    async def _feed(self) -> None:
        try:
            await self._feed_until_the_end()
        finally:
            # At once, not after the last frame is written: a client may take its time to read it.
            self._subscription.close()

    async def _feed_until_the_end(self) -> None:
        async for item in self._subscription:
            match item:
                case event_pb2.ChatEvent():
                    if not await self._has_taken(item):
                        self._queue.finish(sse.resync(self._chat_id), drop=True)
                        return
                case Ended(why):
                    self._queue.finish(self._last_frame(why), drop=why is Ending.RESYNC)
                    return
                case _:
                    assert_never(item)

    async def _has_taken(self, event: event_pb2.ChatEvent) -> bool:
        """Queue an event, waiting for room; return whether there was any in time."""
        shown = event_to_json(self._chat_id, event)
        if shown is None:
            return True
        kind, document = shown
        frame = sse.frame(kind, document, cursor=event.cursor or None)
        while not self._queue.offer(frame):
            if not await is_set_within(self._queue.emptied, self._limits.stall_s, self._clock):
                return False
        return True

    def _last_frame(self, why: Ending) -> bytes:
        match why:
            case Ending.RESYNC:
                return sse.resync(self._chat_id)
            case Ending.GOING_AWAY:
                return sse.bye(self._chat_id)
            case Ending.NOT_FOUND:
                return sse.permission_revoked(self._chat_id)
            case _:
                assert_never(why)

    async def _beat(self) -> None:
        while True:
            silent_s = self._clock.monotonic() - self._sent_at
            if silent_s < self._limits.heartbeat_s:
                await self._clock.sleep(self._limits.heartbeat_s - silent_s)
                continue
            self._queue.offer(sse.HEARTBEAT)
            await self._clock.sleep(self._limits.heartbeat_s)

    async def _end_with_process(self) -> None:
        await self._draining.wait()
        self._queue.finish(sse.bye(self._chat_id))

    async def _end_with_age(self) -> None:
        await self._clock.sleep(self._limits.lifetime_s)
        self._queue.finish(sse.bye(self._chat_id))

    async def _end_with_sign_in(self, is_over: asyncio.Event) -> None:
        await is_over.wait()
        self._queue.finish(sse.permission_revoked(self._chat_id), drop=True)

    async def _end_with_client(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._queue.finish(drop=True)
