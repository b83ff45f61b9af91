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
            began = now - each.age
            self.empty_at[each.bucket] = (
                max(self.empty_at.get(each.bucket, began), began) + each.added
            )
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
    assert buckets.fillings == [Filling("user", "ada", timedelta(seconds=3), timedelta())]


async def test_less_than_a_block_in_a_minute_is_not_shared(
    buckets: Buckets, clock: FakeClock
) -> None:
    gateway = Gateway(buckets, clock, 400)
    for _ in range(100):
        await gateway.accepted(1)
        clock.advance(4)

    assert buckets.fillings == []


@pytest.mark.parametrize("quota", [60, 600])
async def test_steady_requests_over_three_processes_get_one_quota(
    buckets: Buckets, clock: FakeClock, quota: int
) -> None:
    gateways = [Gateway(buckets, clock, quota) for _ in range(3)]
    accepted = 0
    # To each of the three a little less than a whole quota, for three minutes.
    for _ in range(3 * quota):
        for gateway in gateways:
            accepted += await gateway.accepted(1)
        clock.advance(WINDOW_S / quota * 1.02)

    # A quota may come at once, and three become free.
    assert 3 * quota <= accepted <= 4 * quota + 12 + 3 * max(1, quota // BLOCKS)


async def test_one_process_with_idle_times_is_not_limited_by_its_own_blocks(
    buckets: Buckets, clock: FakeClock
) -> None:
    gateway = Gateway(buckets, clock, 60)
    for _ in range(20):
        assert await gateway.accepted(10) == 10
        clock.advance(12)


async def test_counting_goes_on_while_nothing_can_be_shared(
    buckets: Buckets, clock: FakeClock
) -> None:
    gateway, buckets.is_down = Gateway(buckets, clock, 20), True
    for _ in range(20):
        assert gateway.accepts()
        with pytest.raises(DatabaseUnavailable):
            await gateway.shared.share()

    assert not gateway.accepts()


@pytest.mark.parametrize("is_busy", [False, True])
async def test_empty_buckets_are_deleted_every_minute(
    buckets: Buckets, clock: FakeClock, is_busy: bool
) -> None:
    gateway = Gateway(buckets, clock, 20)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(gateway.shared.run())
        await clock.until_sleeping()
        clock.advance(FORGET_S / 2)
        if is_busy:
            gateway.accepts()
            await clock.until_sleeping()
        clock.advance(FORGET_S / 2)
        await clock.until_sleeping()
        running.cancel()

    assert buckets.forgotten == [clock.now()]
