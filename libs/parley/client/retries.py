"""Retries of calls.

The channel already retries a call on the same connection a few times, within a second. The retries
here come after that: the same request, with the same request id, at the next replica, after a
growing delay.
"""

import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import grpc

from parley.client.errors import CallFailed, Unavailable, error_of
from parley.client.replicas import Replica, Replicas
from parley.clock import Clock, backoff_s
from parley.rpc import LIMITS, problem_of

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often an operation is tried, and the delays in between.

    Attributes:
        attempts_max: Attempts in a row, the first included.
        first_s: Delay after the first failure; it doubles from there.
        last_s: Longest delay, jitter aside.
    """

    attempts_max: int
    first_s: float = LIMITS.retry_first_s
    last_s: float = LIMITS.retry_last_s

    def delay_s(self, failures: int, rng: random.Random, hint_s: float | None = None) -> float:
        """Return the delay after `failures` in a row: at least the hint, plus jitter."""
        own_s = backoff_s(failures, self.first_s, self.last_s)
        return max(own_s, hint_s or 0.0) + rng.uniform(0.0, own_s)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client retries.

    Attributes:
        deadline_s: The limit of one call, with all its attempts and the delays between them.
        calls: Retries of unary calls.
        streams: Reopening of a stream without events; an event resets the count.
    """

    deadline_s: float = LIMITS.unary_deadline_s
    calls: Backoff = Backoff(attempts_max=LIMITS.retry_attempts_max)
    streams: Backoff = Backoff(attempts_max=12, last_s=5.0)


class Calls:
    """Makes calls that are safe to repeat: reads, and changes that have a request id."""

    def __init__(
        self, replicas: Replicas, *, patience: Patience, clock: Clock, rng: random.Random
    ) -> None:
        self._replicas = replicas
        self._patience = patience
        self._clock = clock
        self._rng = rng

    async def make(self, key: str, call: Callable[[Replica, float], Awaitable[Answer]]) -> Answer:
        """Return the answer of `call` from the replica that `key` prefers, or from the next.

        Args:
            key: The key that selects the replica.
            call: Starts the call at a replica, with a deadline in seconds.

        Raises:
            CallFailed: It was answered with a problem, or not at all after every attempt.
        """
        replicas, backoff = self._replicas.ranked(key), self._patience.calls
        over_at = self._clock.monotonic() + self._patience.deadline_s
        failures = 0
        while True:
            try:
                replica = replicas[failures % len(replicas)]
                return await call(replica, over_at - self._clock.monotonic())
            except grpc.aio.AioRpcError as error:
                failure = failure_of(error)
                failures += 1
                # A retry hint is that of one replica; those not tried yet gave none.
                hint_s = failure.problem.retry_after_s if failures >= len(replicas) else None
                delay_s = backoff.delay_s(failures, self._rng, hint_s)
                is_last = failures >= backoff.attempts_max
                is_late = self._clock.monotonic() + delay_s >= over_at
                if is_last or is_late or not isinstance(failure, Unavailable):
                    raise failure from error
            await self._clock.sleep(delay_s)


def failure_of(error: grpc.aio.AioRpcError) -> CallFailed:
    """Return a failed call as an error of this package."""
    return error_of(problem_of(error))
