"""The beat of a process: what can wait a moment is done on it, together with all that waits.

A process that is so busy that its beats come late makes them longer: there is more to do together
then, and all of it is cheaper so.
"""

import asyncio
from collections.abc import Callable

from parley.clock import Clock

INTERVAL_S = 0.025
INTERVAL_S_MAX = 0.25
# By how much a beat is longer for each second by which the beats before came late.
LATENESS_FACTOR = 8.0
# How much the last beat tells of how late the next will be.
LATENESS_SHARE = 0.25
# Beats that are by so much longer than they should be are those of a process that is late.
LATE_FACTOR = 1.5


class FlushInterval:
    """How long beats are: longer, the later those of a busy process come."""

    def __init__(self) -> None:
        self.interval_s = INTERVAL_S
        self.is_late = False
        self._late_s = 0.0

    def observe(self, late_s: float) -> None:
        """Learn how late a beat came."""
        self._late_s += LATENESS_SHARE * (max(0.0, late_s) - self._late_s)
        self.interval_s = min(INTERVAL_S + LATENESS_FACTOR * self._late_s, INTERVAL_S_MAX)
        self.is_late = self.interval_s > LATE_FACTOR * INTERVAL_S


class FlushTimer:
    """The beats of one process, while `run` runs and as long as somebody waits for the next."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._interval = FlushInterval()
        self._waiting: list[Callable[[], None]] = []
        self._is_awaited = asyncio.Event()

    @property
    def is_late(self) -> bool:
        """Return whether what can wait had better wait."""
        return self._interval.is_late

    def at_next_flush(self, do: Callable[[], None]) -> None:
        """Do something on the next beat; it must neither wait nor raise."""
        self._waiting.append(do)
        self._is_awaited.set()

    async def run(self) -> None:
        """Beat, whenever something waits for it."""
        while True:
            await self._is_awaited.wait()
            interval_s, began_s = self._interval.interval_s, self._clock.monotonic()
            await self._clock.sleep(interval_s)
            self._interval.observe(self._clock.monotonic() - began_s - interval_s)
            waiting, self._waiting = self._waiting, []
            self._is_awaited.clear()
            self._do_all(waiting)

    def _do_all(self, waiting: list[Callable[[], None]]) -> None:
        """Do one thing after another; if one fails, the rest are done on the next beat."""
        for place, do in enumerate(waiting, start=1):
            try:
                do()
            except BaseException:
                for rest in waiting[place:]:
                    self.at_next_flush(rest)
                raise
