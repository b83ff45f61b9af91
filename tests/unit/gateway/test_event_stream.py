import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from gateway import sse
from gateway.chat_events import Ended, Ending
from gateway.event_stream import EventStream, StreamLimits
from parley.api.chat.v1 import event_pb2
from parley.clock import FakeClock

CHAT = "00000000-0000-0000-0000-000000000001"
QUIET = StreamLimits(heartbeat_s=1e9, lifetime_s=1e9)
RESET = event_pb2.ChatEvent(cursor="1", preview_reset=event_pb2.PreviewResetEvent())
RESET_FRAME = sse.frame("preview_reset", {"type": "preview_reset", "chat_id": CHAT}, cursor="1")


class ScriptedSubscription:
    """Gives what it was told, then nothing."""

    def __init__(self, *items: event_pb2.ChatEvent | Ended) -> None:
        self._items = items
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[event_pb2.ChatEvent | Ended]:
        for item in self._items:
            yield item
        await asyncio.Event().wait()

    def close(self) -> None:
        self.is_closed = True


class RecordingClient:
    """A client that reads when the test lets it, and may leave."""

    def __init__(self, *, is_reading: bool = True) -> None:
        self.body = b""
        self.is_complete = False
        self.reading = asyncio.Event()
        self.got_something = asyncio.Event()
        self.left = asyncio.Event()
        if is_reading:
            self.reading.set()

    async def receive(self) -> MutableMapping[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body":
            self.got_something.set()
            await self.reading.wait()
            self.body += message["body"]
            self.is_complete = not message["more_body"]


def stream_of(
    subscription: ScriptedSubscription,
    clock: FakeClock,
    limits: StreamLimits = QUIET,
    draining: asyncio.Event | None = None,
    is_over: asyncio.Event | None = None,
) -> EventStream:
    return EventStream(
        subscription,
        chat_id=CHAT,
        sign_in=nullcontext(is_over or asyncio.Event()),
        clock=clock,
        draining=draining or asyncio.Event(),
        limits=limits,
    )


async def served(stream: EventStream, client: RecordingClient) -> None:
    await stream({"type": "http"}, client.receive, client.send)


async def test_everything_is_written_before_the_end() -> None:
    subscription = ScriptedSubscription(RESET, RESET, Ended(Ending.GOING_AWAY))
    client = RecordingClient()

    async with asyncio.timeout(5):
        await served(stream_of(subscription, FakeClock()), client)

    assert client.body == sse.OPENING + RESET_FRAME * 2 + sse.bye(CHAT)
    assert (client.is_complete, subscription.is_closed) == (True, True)


async def test_the_end_of_the_sign_in_ends_the_stream() -> None:
    is_over, client, subscription = asyncio.Event(), RecordingClient(), ScriptedSubscription()
    stream = stream_of(subscription, FakeClock(), is_over=is_over)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(served(stream, client))
        await client.got_something.wait()
        is_over.set()

    assert client.body == sse.OPENING + sse.permission_revoked(CHAT)
    assert (client.is_complete, subscription.is_closed) == (True, True)


async def test_a_client_that_does_not_catch_up_in_time_is_resynced() -> None:
    clock, client = FakeClock(), RecordingClient(is_reading=False)
    limits = replace(QUIET, queue_bytes_max=3 * len(RESET_FRAME))
    subscription = ScriptedSubscription(*[RESET] * 10)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(served(stream_of(subscription, clock, limits), client))
        await client.got_something.wait()
        await clock.until_someone_sleeps(3)
        clock.advance(limits.stall_s)
        while not subscription.is_closed:
            await clock.until_someone_sleeps(1)
            await next_turn()
        client.reading.set()

    assert client.body == sse.OPENING + sse.resync(CHAT)


async def test_a_client_that_catches_up_in_time_misses_nothing() -> None:
    clock, client = FakeClock(), RecordingClient(is_reading=False)
    limits = replace(QUIET, queue_bytes_max=3 * len(RESET_FRAME))
    subscription = ScriptedSubscription(*[RESET] * 10, Ended(Ending.GOING_AWAY))

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(served(stream_of(subscription, clock, limits), client))
        await client.got_something.wait()
        await clock.until_someone_sleeps(3)
        clock.advance(limits.stall_s / 2)
        client.reading.set()

    assert client.body == sse.OPENING + RESET_FRAME * 10 + sse.bye(CHAT)


async def test_heartbeats_come_after_silence_only() -> None:
    clock, client = FakeClock(), RecordingClient()
    draining = asyncio.Event()
    limits = replace(QUIET, heartbeat_s=15)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        stream = stream_of(ScriptedSubscription(), clock, limits, draining)
        tasks.create_task(served(stream, client))
        for _ in range(2):
            await clock.until_someone_sleeps(2)
            clock.advance(15)
            await until_sent(client, sse.HEARTBEAT)
        draining.set()

    assert client.body == sse.OPENING + sse.HEARTBEAT * 2 + sse.bye(CHAT)


async def test_a_stream_ends_of_old_age() -> None:
    clock, client = FakeClock(), RecordingClient()
    limits = replace(QUIET, lifetime_s=3600)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(served(stream_of(ScriptedSubscription(), clock, limits), client))
        await clock.until_someone_sleeps(2)
        clock.advance(3600)

    assert client.body == sse.OPENING + sse.bye(CHAT)


async def test_a_client_that_leaves_ends_everything() -> None:
    client, subscription = RecordingClient(), ScriptedSubscription()

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(served(stream_of(subscription, FakeClock()), client))
        await client.got_something.wait()
        client.left.set()

    assert subscription.is_closed


async def test_one_frame_larger_than_the_bound_still_passes() -> None:
    client = RecordingClient()
    limits = replace(QUIET, queue_bytes_max=10)
    subscription = ScriptedSubscription(RESET, Ended(Ending.GOING_AWAY))

    async with asyncio.timeout(5):
        await served(stream_of(subscription, FakeClock(), limits), client)

    assert client.body == sse.OPENING + RESET_FRAME + sse.bye(CHAT)


async def until_sent(client: RecordingClient, frame: bytes) -> None:
    while not client.body.endswith(frame):
        await next_turn()


async def next_turn() -> None:
    """Let every other task that can go on do so."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    await turned
