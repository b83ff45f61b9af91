"""A few frames leave at once; when there are many, they leave in company."""

import asyncio

from chatd.rpc.streams.connection import FLUSH_PAUSE_S, FLUSHES_AT_ONCE, Connection, Entry
from chatd.rpc.streams.position import Position
from chatd.rpc.streams.subscription import Subscription
from parley.api.chat.v1.frame_pb2 import EncodedConnectResponse
from parley.clock import FakeClock


def events_of(frame: bytes) -> list[bytes]:
    deliveries = EncodedConnectResponse.FromString(frame).deliveries
    return [event for delivery in deliveries for event in delivery.events]


async def test_frames_leave_at_once_until_there_are_many_and_then_together() -> None:
    clock = FakeClock()
    connection = Connection(clock)
    reader = Subscription(Position(), connection.wake)
    connection.add(Entry(1, reader, leave=lambda: None))
    frames: asyncio.Queue[bytes] = asyncio.Queue()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(connection.write_all(frames.put))
        assert await frames.get() == b""
        for number in range(FLUSHES_AT_ONCE - 1):
            reader.put(str(number).encode())
            assert events_of(await frames.get()) == [str(number).encode()]
        reader.put(b"almost too many")
        await frames.get()
        clock.advance(FLUSH_PAUSE_S / 2)
        reader.put(b"too many")
        await frames.get()
        await clock.until_someone_sleeps()
        reader.put(b"a")
        reader.put(b"b")
        await asyncio.to_thread(lambda: None)
        assert frames.empty()
        clock.advance(FLUSH_PAUSE_S)
        assert events_of(await frames.get()) == [b"a", b"b"]
        writing.cancel()


async def test_after_a_quiet_moment_frames_leave_at_once_again() -> None:
    clock = FakeClock()
    connection = Connection(clock)
    reader = Subscription(Position(), connection.wake)
    connection.add(Entry(1, reader, leave=lambda: None))
    frames: asyncio.Queue[bytes] = asyncio.Queue()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(connection.write_all(frames.put))
        await frames.get()
        for _ in range(3):
            for number in range(FLUSHES_AT_ONCE - 1):
                reader.put(str(number).encode())
                await frames.get()
            clock.advance(FLUSHES_AT_ONCE * FLUSH_PAUSE_S)
        writing.cancel()
