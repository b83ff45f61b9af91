"""A few frames leave at once; when there are many, they leave in company."""

import asyncio

import pytest

from chatd.streams.rpc.connection import (
    FLUSH_PAUSE_S,
    FLUSH_PAUSE_S_MAX,
    FLUSHES_AT_ONCE,
    Connection,
    Entry,
    pause_s,
)
from chatd.streams.rpc.position import Position
from chatd.streams.rpc.subscription import Subscription
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
        await clock.until_sleeping()
        reader.put(b"a")
        reader.put(b"b")
        await asyncio.to_thread(lambda: None)
        assert frames.empty()
        clock.advance(FLUSH_PAUSE_S)
        assert events_of(await frames.get()) == [b"a", b"b"]
        writing.cancel()


@pytest.mark.parametrize(
    ("deliveries", "expected_s"), [(1, 0.008), (8, 0.008), (16, 0.016), (24, 0.024), (5000, 0.024)]
)
def test_behind_many_deliveries_the_next_frame_waits_longer(
    deliveries: int, expected_s: float
) -> None:
    assert pause_s(deliveries) == pytest.approx(expected_s)


async def test_while_a_crowd_is_served_each_pause_has_one_frame_for_all() -> None:
    clock = FakeClock()
    connection = Connection(clock)
    readers = [Subscription(Position(), connection.wake) for _ in range(100)]
    for number, reader in enumerate(readers):
        connection.add(Entry(number, reader, leave=lambda: None))
    frames: asyncio.Queue[bytes] = asyncio.Queue()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(connection.write_all(frames.put))
        await frames.get()
        for _ in range(4):
            for reader in readers:
                reader.put(b"x")
            assert len(events_of(await frames.get())) == len(readers)
        over_s = 4 * FLUSH_PAUSE_S_MAX - FLUSHES_AT_ONCE * FLUSH_PAUSE_S
        assert await clock.until_sleeping() == pytest.approx(over_s)
        for reader in readers:
            reader.put(b"y")
        clock.advance(FLUSH_PAUSE_S_MAX)
        assert len(events_of(await frames.get())) == len(readers)
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
