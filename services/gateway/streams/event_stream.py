"""The SSE response of one client: its frame queue and the reasons for its end.

The reader of chatd's stream queues frames and never waits: a client whose queue is full gets
`resync`. This task writes the frames; another one waits for the client to disconnect. Heartbeats
and lifetimes are handled for all streams together.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, assert_never

from starlette.types import Receive, Scope, Send

from gateway.http import sse
from gateway.streams.event_source import Ending, Subscription
from gateway.streams.frame_queue import FrameQueue
from gateway.streams.open_streams import OpenStream
from parley.clock import Clock

HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
HEARTBEAT_S = 15.0
LIFETIME_S = 3600.0
QUEUE_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The queue limit, heartbeat interval and lifetime of a stream."""

    queue_bytes_max: int = QUEUE_BYTES_MAX
    heartbeat_s: float = HEARTBEAT_S
    lifetime_s: float = LIFETIME_S


@dataclass(frozen=True, slots=True)
class StreamDependencies:
    """The dependencies of a stream.

    Attributes:
        holding: Registers the stream while it is open.
        watching: Calls back when the client's credential is no longer valid.
        clock: The clock.
        overflowed: Called when the client's queue was full.
    """

    holding: Callable[[OpenStream], AbstractContextManager[None]]
    watching: Callable[[Callable[[], None]], AbstractContextManager[None]]
    clock: Clock
    overflowed: Callable[[], None] = lambda: None


class EventStream:
    """An ASGI response that writes frames until it ends; it is also the event sink."""

    def __init__(
        self,
        around: StreamDependencies,
        limits: StreamLimits,
        *,
        about: Mapping[str, str],
        kinds: frozenset[str] = frozenset(),
    ) -> None:
        """Queue frames from now on; calling the object serves the client.

        Args:
            around: The dependencies.
            limits: The queue limit, heartbeat interval and lifetime.
            about: Fields of the final frames, such as the chat.
            kinds: The requested event types; empty for all.
        """
        self._around = around
        self._limits = limits
        self._about = about
        self._kinds = kinds
        self._queue = FrameQueue(limits.queue_bytes_max)
        self._queue.offer(sse.OPENING)
        self._subscription: Subscription | None = None
        self._opened_at = self._sent_at = around.clock.monotonic()

    def follow(self, subscription: Subscription) -> None:
        """Set the subscription, which is closed at the end."""
        self._subscription = subscription
        if self._queue.is_finished:
            self._let_go()

    def take(self, kind: str, frame: bytes) -> None:
        """Queue one event, encoded for clients."""
        if self._kinds and kind not in self._kinds:
            return
        if not self._queue.offer(frame):
            self._around.overflowed()
            self._finish(sse.resync(self._about), drop=True)

    def end(self, why: Ending) -> None:
        """End the stream with the matching final frame."""
        match why:
            case Ending.RESYNC:
                self._finish(sse.resync(self._about), drop=True)
            case Ending.GOING_AWAY:
                self._finish(sse.bye(self._about))
            case Ending.NOT_FOUND:
                self._finish(sse.permission_revoked(self._about))
            case _:
                assert_never(why)

    def tick(self, now: float) -> None:
        """Send a heartbeat after a silence, or end the stream after its lifetime."""
        if now - self._opened_at >= self._limits.lifetime_s:
            self.send_bye()
        elif now - self._sent_at >= self._limits.heartbeat_s:
            self._sent_at = now
            self._queue.offer(sse.HEARTBEAT)

    def send_bye(self) -> None:
        """End the stream, because the process stops."""
        self._finish(sse.bye(self._about))

    async def wait_sent(self) -> None:
        """Wait until the client has taken what is queued, except for the last piece.

        It does not return after the end of the stream, even while a slow client takes the rest.
        """
        await self._queue.wait_empty()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the client."""
        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        around = self._around
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            with around.holding(self), around.watching(self._sign_in_ended):
                async with asyncio.TaskGroup() as tasks:
                    leaving = tasks.create_task(self._end_with_client(receive))
                    await self._write(send)
                    leaving.cancel()
        finally:
            self._let_go()

    async def _write(self, send: Send) -> None:
        has_more = True
        while has_more:
            frames, has_more = await self._queue.take()
            self._sent_at = self._around.clock.monotonic()
            await send({"type": "http.response.body", "body": frames, "more_body": has_more})
            if self._subscription is not None:
                self._subscription.confirm_delivered()

    def _sign_in_ended(self) -> None:
        self._finish(sse.permission_revoked(self._about), drop=True)

    async def _end_with_client(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._finish(b"", drop=True)

    def _finish(self, last: bytes, *, drop: bool = False) -> None:
        self._queue.finish(last, drop=drop)
        # At once, not after the last frame is written: a slow client may take long to read it.
        self._let_go()

    def _let_go(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
