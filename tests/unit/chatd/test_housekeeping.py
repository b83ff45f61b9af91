"""Housekeeping goes on after every kind of failure."""

import asyncio

from chatd.housekeeping import EVERY_S, PAUSE_S, HousekeepingLoop
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable


class Flaky:
    """Counts the batches; the first attempt meets an outage, the next two find more."""

    def __init__(self) -> None:
        self.batches = 0

    async def delete_expired(self, rows_max: int) -> bool:
        self.batches += 1
        if self.batches == 1:
            raise DatabaseUnavailable("down")
        return self.batches < 4


async def test_housekeeping_goes_on_until_nothing_is_left_and_after_an_outage() -> None:
    clock, flaky = FakeClock(), Flaky()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        housekeeping_loop = group.create_task(
            HousekeepingLoop(flaky, clock, jitter=lambda: 0.5).run()
        )
        for wait_s, batches in ((EVERY_S, 1), (EVERY_S, 2), (PAUSE_S, 3), (PAUSE_S, 4)):
            await clock.until_sleeping()
            clock.advance(wait_s - 0.01)
            assert flaky.batches == batches - 1
            clock.advance(0.01)
            await clock.until_sleeping()
            assert flaky.batches == batches
        housekeeping_loop.cancel()
