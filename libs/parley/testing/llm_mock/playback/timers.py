"""Timers: one task sleeps for all streams, and calls all that are due together.

A task and a timer for each delta would be the most expensive part of a mock with hundreds of
streams.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from parley.clock import Clock

# Timers due within this time are called together; event loops have no finer resolution.
GRAIN_S = 0.001


@dataclass(slots=True)
class Timer:
    """A callback that is called once, unless it is cancelled before."""

    do: Callable[[], None]
    is_off: bool = False


@dataclass(slots=True)
class Timers:
    """Calls callbacks later; an error of one ends the task group."""

    clock: Clock
    tasks: asyncio.TaskGroup
    _waiting: list[tuple[float, int, Timer]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=count)
    _running: asyncio.Task[None] | None = None
    _is_asleep: bool = False

    def after(self, delay_s: float, do: Callable[[], None]) -> Timer:
        """Call `do` after so many seconds."""
        appointment = Timer(do)
        entry = (self.clock.monotonic() + delay_s, next(self._order), appointment)
        heapq.heappush(self._waiting, entry)
        if self._running is None or (self._is_asleep and self._waiting[0] is entry):
            self._run_anew()
        return appointment

    def call_off(self, appointment: Timer) -> None:
        """Cancel the timer."""
        appointment.is_off = True
        if self._is_asleep and self._waiting[0][2] is appointment:
            self._run_anew()

    def stop(self) -> None:
        """Cancel all timers."""
        self._waiting.clear()
        self._is_asleep = False
        if self._running is not None:
            self._running.cancel()

    def _run_anew(self) -> None:
        """Sleep until the timer that is now the first."""
        if self._running is not None:
            self._running.cancel()
        self._is_asleep = False
        self._running = self.tasks.create_task(self._run())

    async def _run(self) -> None:
        while self._is_anything_waiting():
            self._is_asleep = True
            delay_s = self._waiting[0][0] - self.clock.monotonic()
            await self.clock.sleep(max(delay_s, GRAIN_S))
            self._is_asleep = False
            self._do_due()
        self._running = None

    def _is_anything_waiting(self) -> bool:
        while self._waiting and self._waiting[0][2].is_off:
            heapq.heappop(self._waiting)
        return bool(self._waiting)

    def _do_due(self) -> None:
        """Call the callbacks that are due now, or within half a grain."""
        until_s = self.clock.monotonic() + GRAIN_S / 2
        while self._waiting and self._waiting[0][0] <= until_s:
            appointment = heapq.heappop(self._waiting)[2]
            if not appointment.is_off:
                appointment.do()
