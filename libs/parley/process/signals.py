"""Signals that end a process: the first asks, the second does not."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# Written to directly: the buffered stream may be in use by the code that was interrupted.
STDERR: Final = 2


@contextmanager
def stopping_on_signals(service: str) -> Iterator[asyncio.Event]:
    """Give an event that the first SIGTERM or SIGINT sets; a second one ends the process at once.

    Plain signal handlers, not the loop's: a loop that hangs must not keep the second signal out.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            with suppress(OSError):
                os.write(STDERR, f"{service}: stopped at once\n".encode())
            os._exit(128 + number)
        loop.call_soon_threadsafe(stopping.set)

    before = {number: signal.signal(number, receive) for number in STOP_SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
