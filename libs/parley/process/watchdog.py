"""Reports a blocked event loop with the stacks of all threads, from outside the loop."""

import asyncio
import faulthandler
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

TICK_S = 1.0
BLOCKED_S = 5.0

logger = logging.getLogger(__name__)


class _Watchdog:
    """Postpones, on each turn of the loop, the time at which faulthandler writes all stacks."""

    def __init__(self, blocked_s: float, turn_every_s: float, file: IO[str]) -> None:
        self._blocked_s = blocked_s
        self._turn_every_s = turn_every_s
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.TimerHandle | None = None
        self._due_s = time.monotonic()

    def turn(self) -> None:
        now_s = time.monotonic()
        late_s = now_s - self._due_s
        if late_s >= self._blocked_s:
            logger.error("the event loop did not turn for %.1f s; stacks are above", late_s)
        faulthandler.dump_traceback_later(self._turn_every_s + self._blocked_s, file=self._file)
        self._due_s = now_s + self._turn_every_s
        self._next = self._loop.call_later(self._turn_every_s, self.turn)

    def stop(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        if self._next is not None:
            self._next.cancel()


@contextmanager
def watched_event_loop(
    blocked_s: float = BLOCKED_S,
    turn_every_s: float = TICK_S,
    file: IO[str] | None = None,
) -> Iterator[None]:
    """Write the stacks of all threads to `file` (standard error) when the loop is blocked."""
    watchdog = _Watchdog(blocked_s, turn_every_s, file or sys.stderr)
    watchdog.turn()
    try:
        yield
    finally:
        watchdog.stop()
