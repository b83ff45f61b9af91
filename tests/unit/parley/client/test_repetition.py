import asyncio
import random  # noqa: TID251 (a seeded one is no chance)
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from parley.client import Backoff, NotFound, Patience, Unavailable
from parley.client.replicas import Replica, Replicas
from parley.client.retries import Calls
from parley.clock import FakeClock
from parley.rpc import Address, Channels

A, B = Address.parse("unix:/nowhere/a.sock"), Address.parse("unix:/nowhere/b.sock")


class NoJitter(random.Random):
    """Chance that always adds nothing."""

    def uniform(self, a: float, b: float) -> float:
        return a


def rpc_error(status: grpc.StatusCode) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(status, grpc.aio.Metadata(), grpc.aio.Metadata())


class Script:
    """A call that fails with these statuses and then answers."""

    def __init__(self, *statuses: grpc.StatusCode) -> None:
        self._statuses = list(statuses)
        self.replicas: list[Replica] = []
        self.deadlines_s: list[float] = []

    async def __call__(self, replica: Replica, deadline_s: float) -> str:
        self.replicas.append(replica)
        self.deadlines_s.append(deadline_s)
        if self._statuses:
            raise rpc_error(self._statuses.pop(0))
        return "done"


@asynccontextmanager
async def replicas_at(*addresses: Address) -> AsyncIterator[Replicas]:
    channels = Channels(addresses, lambda address: grpc.aio.insecure_channel(address.target))
    yield Replicas(channels)
    await channels.close()


def calls_to(replicas: Replicas, clock: FakeClock, patience: Patience | None = None) -> Calls:
    return Calls(replicas, patience=patience or Patience(), clock=clock, rng=NoJitter())


def test_delays_double_up_to_the_longest_and_jitter_adds_at_most_as_much_again() -> None:
    backoff = Backoff(attempts_max=9, first_s=0.1, last_s=1.0)

    assert [backoff.delay_s(n, NoJitter()) for n in (1, 2, 3, 4, 5, 99)] == [
        0.1,
        0.2,
        0.4,
        0.8,
        1.0,
        1.0,
    ]
    rng = random.Random(1)
    assert all(0.1 <= backoff.delay_s(1, rng) <= 0.2 for _ in range(100))


def test_a_hint_is_the_least_one_waits() -> None:
    backoff = Backoff(attempts_max=9, first_s=0.1, last_s=1.0)

    assert backoff.delay_s(1, NoJitter(), 5.0) == 5.0
    assert backoff.delay_s(5, NoJitter(), 0.5) == 1.0


async def test_an_unavailable_call_is_made_again_at_the_next_replica() -> None:
    clock = FakeClock()
    script = Script(*[grpc.StatusCode.UNAVAILABLE] * 2)
    async with asyncio.timeout(5), replicas_at(A, B) as replicas, asyncio.TaskGroup() as tasks:
        made = tasks.create_task(calls_to(replicas, clock).make("chat", script))
        assert await clock.until_sleeping() == pytest.approx(0.1)
        clock.advance(0.1)
        assert await clock.until_sleeping() == pytest.approx(0.2)
        clock.advance(0.2)
        first, second = replicas.ranked("chat")
        assert await made == "done"

    assert [id(each) for each in script.replicas] == [id(first), id(second), id(first)]
    assert script.deadlines_s == pytest.approx([30.0, 29.9, 29.7])


async def test_other_refusals_are_final() -> None:
    script = Script(grpc.StatusCode.NOT_FOUND)
    async with asyncio.timeout(5), replicas_at(A) as replicas:
        with pytest.raises(NotFound):
            await calls_to(replicas, FakeClock()).make("chat", script)

    assert len(script.replicas) == 1


async def test_attempts_are_bounded() -> None:
    script = Script(*[grpc.StatusCode.UNAVAILABLE] * 9)
    patience = Patience(calls=Backoff(attempts_max=3, first_s=0.0))
    async with asyncio.timeout(5), replicas_at(A) as replicas:
        with pytest.raises(Unavailable):
            await calls_to(replicas, FakeClock(), patience).make("chat", script)

    assert len(script.replicas) == 3


async def test_no_attempt_is_waited_for_that_would_miss_the_deadline() -> None:
    script = Script(*[grpc.StatusCode.UNAVAILABLE] * 9)
    patience = Patience(deadline_s=1.0, calls=Backoff(attempts_max=9, first_s=1.0))
    async with asyncio.timeout(5), replicas_at(A) as replicas:
        with pytest.raises(Unavailable):
            await calls_to(replicas, FakeClock(), patience).make("chat", script)

    assert len(script.replicas) == 1
