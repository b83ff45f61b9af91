"""The machine's own time."""

import asyncio
from datetime import timedelta

from parley.clock import SystemClock


def test_the_wall_clock_is_in_utc() -> None:
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_monotonic_time_does_not_go_back() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(100)]
    assert readings == sorted(readings)


async def test_sleeping_takes_at_least_its_delay() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    async with asyncio.timeout(5):
        await clock.sleep(0.01)
    # The loop's own clock resolution may let it wake that much early.
    assert clock.monotonic() - before >= 0.009
