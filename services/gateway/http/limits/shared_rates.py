"""Shares the rates of requests between the gateways of an installation.

Requests are counted in memory. When a subject has used a block of its quota, a task adds the block
to the bucket in the database, together with all others that are due, and learns what the other
gateways added to it. A request never waits for that.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NoReturn, Protocol

from gateway.http.limits.rates import Block, Rates
from gateway.identity.store.request_rates import Filling
from parley.clock import Clock
from parley.tasks import is_set_within

#: How often buckets that are empty are deleted.
FORGET_S: Final = 60.0


class RateStore(Protocol):
    """The buckets that all gateways fill."""

    async def fill(self, fillings: Sequence[Filling], now: datetime) -> Mapping[Filling, float]:
        """Fill the buckets; return in how many seconds each is empty."""
        ...

    async def forget(self, now: datetime) -> None:
        """Delete the buckets that are empty."""
        ...


class SharedRates:
    """Adds what this process counts to the buckets of all, as long as `run` runs."""

    def __init__(self, rates: Rates, store: RateStore, clock: Clock) -> None:
        self._rates = rates
        self._store = store
        self._clock = clock

    async def run(self) -> NoReturn:
        """Share blocks as they become due, until cancelled."""
        forget_at_s = self._clock.monotonic() + FORGET_S
        while True:
            left_s = max(0.0, forget_at_s - self._clock.monotonic())
            if await is_set_within(self._rates.is_due, left_s, self._clock):
                await self.share()
            if self._clock.monotonic() >= forget_at_s:
                await self._store.forget(self._clock.now())
                forget_at_s = self._clock.monotonic() + FORGET_S

    async def share(self) -> None:
        """Share the blocks that are due now."""
        now_s = self._clock.monotonic()
        blocks = {_filling(block): block for block in self._rates.take_due(now_s)}
        if not blocks:
            return
        for filling, empty_s in (await self._store.fill(tuple(blocks), self._clock.now())).items():
            self._rates.adopt(blocks[filling], now_s + empty_s)


def _filling(block: Block) -> Filling:
    added, age = timedelta(seconds=block.fill_s), timedelta(seconds=block.age_s)
    return Filling(block.policy, block.subject, added, age)
