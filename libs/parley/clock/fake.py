"""A clock that advances only when a test calls `advance`."""

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """Time that passes only in `advance`, so that a test controls every instant.

    `until_sleeping` waits until the code under test sleeps on the clock, so that a test does not
    call `advance` too early.
    """

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = start
        self._elapsed_s = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._slept = asyncio.Condition()

    def now(self) -> datetime:
        """Return the start time plus the seconds advanced."""
        return self._start + timedelta(seconds=self._elapsed_s)

    def monotonic(self) -> float:
        """Return the seconds advanced so far."""
        return self._elapsed_s

    async def sleep(self, delay_s: float) -> None:
        """Return once the clock was advanced by `delay_s`."""
        if delay_s <= 0:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (self._elapsed_s + delay_s, next(self._order), woken)
        heapq.heappush(self._sleepers, entry)
        async with self._slept:
            self._slept.notify_all()
        await woken

    async def until_sleeping(self, sleepers: int = 1) -> float:
        """Wait for at least `sleepers` sleeping tasks; return the delay of the first to wake."""
        async with self._slept:
            await self._slept.wait_for(lambda: len(self._asleep()) >= sleepers)
        return self._asleep()[0][0] - self._elapsed_s

    async def until_sleeping_for(self, delay_s: float) -> None:
        """Wait for a task that wakes in exactly `delay_s` seconds."""
        async with self._slept:
            await self._slept.wait_for(
                lambda: any(at - self._elapsed_s == delay_s for at, _, _ in self._asleep())
            )

    def advance(self, seconds: float) -> None:
        """Advance by `seconds` and wake the sleepers whose delay is over, in order."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self._elapsed_s += seconds
        while self._sleepers and self._sleepers[0][0] <= self._elapsed_s:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)

    def _asleep(self) -> list[tuple[float, int, asyncio.Future[None]]]:
        """Return the sleepers that were not cancelled, soonest first."""
        return sorted(entry for entry in self._sleepers if not entry[2].done())
