"""The flush timer of a process: runs deferred callbacks together, once per interval.

If the event loop is so busy that flushes run late, the interval grows: larger batches are cheaper.
"""

import asyncio
from collections.abc import Callable

from parley.clock import Clock

INTERVAL_S = 0.025
INTERVAL_S_MAX = 0.25
# Seconds added to the interval per second of (smoothed) lateness.
LATENESS_FACTOR = 8.0
# Weight of the last flush in the exponential average of the lateness.
LATENESS_SHARE = 0.25
# The process counts as late if its interval exceeds the base interval by this factor.
LATE_FACTOR = 1.5


class FlushInterval:
    """The flush interval; it grows with the lateness of past flushes."""

    def __init__(self) -> None:
        self.interval_s = INTERVAL_S
        self.is_late = False
        self._late_s = 0.0

    def observe(self, late_s: float) -> None:
        """Update the interval with the lateness of one flush."""
        self._late_s += LATENESS_SHARE * (max(0.0, late_s) - self._late_s)
        self.interval_s = min(INTERVAL_S + LATENESS_FACTOR * self._late_s, INTERVAL_S_MAX)
        self.is_late = self.interval_s > LATE_FACTOR * INTERVAL_S


class FlushTimer:
    """The flush timer of one process; it fires while `run` runs and callbacks are registered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._interval = FlushInterval()
        self._waiting: list[Callable[[], None]] = []
        self._is_awaited = asyncio.Event()

    @property
    def is_late(self) -> bool:
        """Return whether the process is late, so that deferrable work should be deferred."""
        return self._interval.is_late

    def at_next_flush(self, do: Callable[[], None]) -> None:
        """Call `do` at the next flush; it must neither block nor raise."""
        self._waiting.append(do)
        self._is_awaited.set()

    async def run(self) -> None:
        """Flush once per interval for as long as callbacks are registered."""
        while True:
            await self._is_awaited.wait()
            interval_s, began_s = self._interval.interval_s, self._clock.monotonic()
            await self._clock.sleep(interval_s)
            self._interval.observe(self._clock.monotonic() - began_s - interval_s)
            waiting, self._waiting = self._waiting, []
            self._is_awaited.clear()
            self._do_all(waiting)

    def _do_all(self, waiting: list[Callable[[], None]]) -> None:
        """Call all callbacks; if one raises, the rest are deferred to the next flush."""
        for place, do in enumerate(waiting, start=1):
            try:
                do()
            except BaseException:
                for rest in waiting[place:]:
                    self.at_next_flush(rest)
                raise
