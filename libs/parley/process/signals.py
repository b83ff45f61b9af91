"""Signals of a process, and its settings in the Linux kernel."""

import asyncio
import ctypes
import os
import signal
import sys
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


PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4


def end_with_parent(parent_pid: int) -> bool:
    """Set SIGTERM as the parent death signal; return whether the parent is still alive.

    The signal is set before the parent is checked, so that its death cannot be missed. The kernel
    sends it when the thread that started this process ends, so that thread has to stay.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent_pid


def forbid_inspection() -> None:
    """Disable core dumps, and reading of this process's memory by others of the same user."""
    _prctl(PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
