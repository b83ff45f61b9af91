"""Signals that stop a process: the first gracefully, the second immediately."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# Written to the descriptor: the interrupted code may be using the buffered stream.
STDERR: Final = 2


@contextmanager
def stopping_on_signals(service: str) -> Iterator[asyncio.Event]:
    """Yield an event that the first SIGTERM or SIGINT sets; a second one exits immediately.

    Plain signal handlers, not the loop's: a blocked loop must not delay the second signal.
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
