"""The frames of a client: readers of processes queue one at a time, and none after the end."""

import asyncio

import pytest

from gateway.streams.frame_queue import FrameQueue


async def test_readers_that_wait_for_room_queue_one_after_the_other() -> None:
    queue = FrameQueue(bytes_max=10)
    assert queue.offer(b"message")
    offered: list[bool] = []

    async def read(frame: bytes) -> None:
        await queue.wait_empty()
        offered.append(queue.offer(frame))

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(read(b"output %d" % number)) for number in range(8)]
        taken = [(await queue.take())[0] for _ in range(1 + len(readers))]
    assert taken == [b"message", *(b"output %d" % number for number in range(8))]
    assert offered == [True] * 8


async def test_after_the_end_there_is_nothing_to_wait_for() -> None:
    queue = FrameQueue(bytes_max=10)
    queue.finish(b"bye")
    assert await queue.take() == (b"bye", False)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await queue.wait_empty()
