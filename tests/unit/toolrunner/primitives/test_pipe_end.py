"""Descriptors of pipes are closed once, whichever event loop reads and writes them."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from toolrunner.primitives.pipe_end import PipeEnd

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "uvloop": uvloop.new_event_loop,
    "asyncio": asyncio.SelectorEventLoop,
}


class Watched(PipeEnd):
    """Opens a file just before it is closed, as a thread may at that moment."""

    opened = -1

    def close(self) -> None:
        self.opened = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        super().close()


class Reading(asyncio.Protocol):
    """Tells of the end."""

    def __init__(self) -> None:
        self.is_over = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over.set()


async def after_the_end() -> tuple[bool, bool]:
    """Return whether the pipe is closed, and whether a file that was opened meanwhile is open."""
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    end: Any = Watched(reading, loop)
    transport, protocol = await loop.connect_read_pipe(Reading, end)
    transport.close()
    await protocol.is_over.wait()
    try:
        os.fstat(end.opened)
        is_open = True
    except OSError:
        is_open = False
    try:
        os.write(writing, b"x")
        is_closed = False
    except BrokenPipeError:
        is_closed = True
    os.close(writing)
    return is_closed, is_open


@pytest.mark.parametrize("name", LOOPS)
def test_a_pipe_is_closed_with_its_transport_and_nothing_else_is(name: str) -> None:
    with asyncio.Runner(loop_factory=LOOPS[name]) as runner:
        assert runner.run(after_the_end()) == (True, True)
