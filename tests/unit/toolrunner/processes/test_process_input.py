import asyncio
import os

import pytest

from toolrunner.primitives.errors import InputFull
from toolrunner.processes.input_buffer import WAITING_BYTES_MAX, ProcessInput


async def test_what_is_not_read_waits_and_nothing_is_lost() -> None:
    reading, input_write = os.pipe()
    process_input = ProcessInput(input_write, is_terminal=False)
    data = os.urandom(500_000)
    process_input.write(data[:300_000])
    process_input.write(data[300_000:])
    assert not process_input.flushed.is_set()
    process_input.end()
    read = await asyncio.to_thread(read_all, reading)
    assert read == data
    async with asyncio.timeout(5):
        await process_input.closed.wait()
    assert not process_input.is_open


async def test_too_much_is_refused_whole() -> None:
    reading, input_write = os.pipe()
    process_input = ProcessInput(input_write, is_terminal=False)
    process_input.write(b"x" * WAITING_BYTES_MAX)
    with pytest.raises(InputFull):
        process_input.write(b"y" * WAITING_BYTES_MAX)
    process_input.close()
    assert b"y" not in read_all(reading)


async def test_a_reader_that_is_gone_closes_the_input() -> None:
    reading, input_write = os.pipe()
    os.close(reading)
    process_input = ProcessInput(input_write, is_terminal=False)
    process_input.write(b"for nobody")
    assert (process_input.is_open, process_input.flushed.is_set()) == (False, True)
    process_input.write(b"more")
    process_input.end()


def read_all(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()
