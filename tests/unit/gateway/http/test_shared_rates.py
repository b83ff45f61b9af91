"""Processes that share what they counted, over buckets in memory."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pytest

from gateway.http.limits.rates import BLOCKS, WINDOW_S, RateQuotas, Rates
from gateway.http.limits.shared_rates import FORGET_S, SharedRates
from gateway.http.problems.errors import HttpProblem
from gateway.identity.store.request_rates import Filling
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable


class Buckets:
    """The buckets of all processes; unavailable while `is_down`."""

    def __init__(self) -> None:
        self.empty_at: dict[bytes, datetime] = {}
        self.fillings: list[Filling] = []
        self.forgotten: list[datetime] = []
        self.is_down = False

    async def fill(self, fillings: Sequence[Filling], now: datetime) -> Mapping[Filling, float]:
        if self.is_down:
            raise DatabaseUnavailable("closed")
        self.fillings += fillings
        for each in fillings:
            filled = max(self.empty_at.get(each.bucket, now), now) + each.added
            self.empty_at[each.bucket] = filled
        return {each: (self.empty_at[each.bucket] - now).total_seconds() for each in fillings}

    async def forget(self, now: datetime) -> None:
        self.forgotten.append(now)


class Gateway:
    """One process."""

    def __init__(self, buckets: Buckets, clock: FakeClock, quota: int) -> None:
        self.rates = Rates(RateQuotas(user=quota))
        self.shared = SharedRates(self.rates, buckets, clock)
        self._clock = clock

    def accepts(self) -> bool:
        """Return whether one more request is accepted."""
        try:
            self.rates.count("user", "ada", self._clock.monotonic(), {})
        except HttpProblem:
            return False
        return True

    async def accepted(self, count: int) -> int:
        """Return how many of some requests are accepted, with sharing after each."""
        found = 0
        for _ in range(count):
            found += self.accepts()
            await self.shared.share()
        return found


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def buckets() -> Buckets:
    return Buckets()


@pytest.mark.parametrize("quota", [1, 7, 20, 400])
async def test_two_processes_give_one_quota_and_a_block(
    buckets: Buckets, clock: FakeClock, quota: int
) -> None:
    first, second = Gateway(buckets, clock, quota), Gateway(buckets, clock, quota)
    accepted = await first.accepted(quota * 2) + await second.accepted(quota * 2)

    assert quota <= accepted <= quota + max(1, quota // BLOCKS)


async def test_what_leaked_is_free_for_either(buckets: Buckets, clock: FakeClock) -> None:
    first, second = Gateway(buckets, clock, 20), Gateway(buckets, clock, 20)
    await first.accepted(40)
    await second.accepted(2)
    clock.advance(WINDOW_S / 2)

    assert 10 <= await second.accepted(20) + await first.accepted(20) <= 12


async def test_nothing_is_shared_before_a_block_is_used(buckets: Buckets, clock: FakeClock) -> None:
    gateway = Gateway(buckets, clock, 400)
    await gateway.accepted(19)
    before = list(buckets.fillings)
    await gateway.accepted(1)

    assert before == []
    assert buckets.fillings == [Filling("user", "ada", timedelta(seconds=3))]


async def test_what_leaked_before_it_was_shared_is_not_counted(
    buckets: Buckets, clock: FakeClock
) -> None:
    gateway = Gateway(buckets, clock, 400)
    for _ in range(100):
        await gateway.accepted(1)
        clock.advance(1)

    assert buckets.fillings == []


async def test_counting_goes_on_while_nothing_can_be_shared(
    buckets: Buckets, clock: FakeClock
) -> None:
    gateway, buckets.is_down = Gateway(buckets, clock, 20), True
    for _ in range(20):
        assert gateway.accepts()
        with pytest.raises(DatabaseUnavailable):
            await gateway.shared.share()

    assert not gateway.accepts()


async def test_empty_buckets_are_deleted_every_minute(buckets: Buckets, clock: FakeClock) -> None:
    gateway = Gateway(buckets, clock, 20)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(gateway.shared.run())
        await clock.until_sleeping()
        clock.advance(FORGET_S)
        await clock.until_sleeping()
        running.cancel()

    assert buckets.forgotten == [clock.now()]
