import asyncio
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gateway.http import sse
from gateway.streams.event_source import Ending
from gateway.streams.event_stream import EventStream, StreamDependencies, StreamLimits
from gateway.streams.open_streams import OpenStreams
from parley.clock import FakeClock

ABOUT = {"chat_id": "00000000-0000-0000-0000-000000000001"}
LIMITS = StreamLimits(heartbeat_s=15, lifetime_s=3600)
RESET = sse.frame("preview_reset", {"type": "preview_reset", **ABOUT}, cursor="1")


class NotedSubscription:
    """Notes what is said to it."""

    def __init__(self) -> None:
        self.is_closed = False
        self.passed_on_count = 0

    def confirm_delivered(self) -> None:
        self.passed_on_count += 1

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


class Stage:
    """One stream and everything around it."""

    def __init__(
        self, limits: StreamLimits = LIMITS, *, kinds: frozenset[str] = frozenset()
    ) -> None:
        self.clock = FakeClock()
        self.streams = OpenStreams(self.clock)
        self.subscription = NotedSubscription()
        self.end_sign_in: Callable[[], None] = lambda: None
        around = StreamDependencies(self.streams.holding, self._watching, self.clock)
        self.stream = EventStream(around, limits, about=ABOUT, kinds=kinds)
        self.stream.follow(self.subscription)

    @contextmanager
    def _watching(self, is_over: Callable[[], None]) -> Iterator[None]:
        self.end_sign_in = is_over
        yield

    async def served(self, client: RecordingClient) -> None:
        async with asyncio.timeout(5):
            await self.stream({"type": "http"}, client.receive, client.send)


async def test_everything_is_written_before_the_end() -> None:
    stage, client = Stage(), RecordingClient()
    stage.stream.take("preview_reset", RESET)
    stage.stream.take("preview_reset", RESET)
    stage.stream.end(Ending.GOING_AWAY)

    await stage.served(client)

    assert client.body == sse.OPENING + RESET * 2 + sse.bye(ABOUT)
    assert (client.is_complete, stage.subscription.is_closed) == (True, True)


async def test_the_end_of_the_sign_in_ends_the_stream() -> None:
    stage, client = Stage(), RecordingClient()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stage.served(client))
        await client.got_something.wait()
        stage.end_sign_in()

    assert client.body == sse.OPENING + sse.permission_revoked(ABOUT)
    assert (client.is_complete, stage.subscription.is_closed) == (True, True)


async def test_a_client_that_leaves_too_much_unread_is_resynced_and_let_go_at_once() -> None:
    stage = Stage(replace(LIMITS, queue_bytes_max=3 * len(RESET)))
    client = RecordingClient(is_reading=False)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stage.served(client))
        await client.got_something.wait()
        for _ in range(4):
            stage.stream.take("preview_reset", RESET)
        assert stage.subscription.is_closed
        client.reading.set()

    assert client.body == sse.OPENING + sse.resync(ABOUT)


async def test_heartbeats_come_after_silence_only() -> None:
    stage, client = Stage(), RecordingClient()

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(stage.streams.run())
        tasks.create_task(stage.served(client))
        await client.got_something.wait()
        for beats in (1, 2):
            for _ in range(15):
                await stage.clock.until_sleeping()
                stage.clock.advance(1)
                await next_turn()
            await until_sent(client, sse.OPENING + sse.HEARTBEAT * beats)
        stage.streams.stop()
        looking.cancel()

    assert client.body == sse.OPENING + sse.HEARTBEAT * 2 + sse.bye(ABOUT)


async def test_a_stream_ends_of_old_age() -> None:
    stage, client = Stage(), RecordingClient()

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(stage.served(client))
        await client.got_something.wait()
        stage.stream.tick(3600)

    assert client.body == sse.OPENING + sse.bye(ABOUT)


async def test_a_stream_that_begins_while_the_process_stops_says_bye() -> None:
    stage, client = Stage(), RecordingClient()
    stage.streams.stop()

    await stage.served(client)

    assert client.body == sse.OPENING + sse.bye(ABOUT)


async def test_a_client_that_leaves_ends_everything() -> None:
    stage, client = Stage(), RecordingClient()

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(stage.served(client))
        await client.got_something.wait()
        client.left.set()

    assert (stage.subscription.is_closed, len(stage.streams)) == (True, 0)


async def test_one_frame_larger_than_the_bound_still_passes() -> None:
    stage, client = Stage(replace(LIMITS, queue_bytes_max=10)), RecordingClient()

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(stage.served(client))
        await until_sent(client, sse.OPENING)
        stage.stream.take("preview_reset", RESET)
        await until_sent(client, RESET)
        stage.stream.send_bye()

    assert client.body == sse.OPENING + RESET + sse.bye(ABOUT)
    assert stage.subscription.passed_on_count == 3


async def test_kinds_that_were_not_asked_for_are_left_out() -> None:
    stage, client = Stage(kinds=frozenset({"message"})), RecordingClient()
    stage.stream.take("preview_reset", RESET)
    stage.stream.end(Ending.GOING_AWAY)

    await stage.served(client)

    assert client.body == sse.OPENING + sse.bye(ABOUT)


async def until_sent(client: RecordingClient, frame: bytes) -> None:
    while not client.body.endswith(frame):
        await next_turn()


async def next_turn() -> None:
    """Let every other task that can go on do so."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    await turned
