"""A transaction that the server rolled back is repeated a bounded number of times."""

from collections.abc import Sequence

import pytest

from parley.clock import FakeClock
from parley.postgres import (
    ConflictRetries,
    DatabaseBusy,
    DatabaseUnavailable,
    Deadlocked,
    SerializationFailed,
)
from parley.postgres.conflicts import ATTEMPTS_MAX


class Transaction:
    """Ends with these errors, one after the other, and then with success."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        self.attempts = 0
        self._errors = list(errors)

    async def __call__(self) -> str:
        self.attempts += 1
        if self._errors:
            raise self._errors.pop(0)
        return "committed"


class NotedClock(FakeClock):
    """Notes the pauses, which take no time."""

    def __init__(self) -> None:
        super().__init__()
        self.slept_s: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        self.slept_s.append(round(delay_s, 3))


async def test_a_transaction_is_not_repeated_without_a_conflict() -> None:
    clock, transaction = NotedClock(), Transaction([])
    assert await ConflictRetries(clock, lambda: 1.0).run(transaction) == "committed"
    assert (transaction.attempts, clock.slept_s) == (1, [])


@pytest.mark.parametrize("error", [Deadlocked("deadlock"), SerializationFailed("conflict")])
async def test_a_transaction_that_met_a_conflict_is_repeated_after_a_pause(
    error: Exception,
) -> None:
    clock, transaction = NotedClock(), Transaction([error])
    assert await ConflictRetries(clock, lambda: 0.0).run(transaction) == "committed"
    assert (transaction.attempts, clock.slept_s) == (2, [0.05])


async def test_the_pauses_grow_and_have_jitter() -> None:
    clock = NotedClock()
    transaction = Transaction([Deadlocked("deadlock")] * (ATTEMPTS_MAX - 1))
    await ConflictRetries(clock, lambda: 0.5).run(transaction)
    assert clock.slept_s == [0.075, 0.15, 0.3, 0.6, 1.2]


async def test_the_error_of_the_last_attempt_is_raised() -> None:
    transaction = Transaction([Deadlocked(str(number)) for number in range(ATTEMPTS_MAX + 1)])
    with pytest.raises(Deadlocked) as raised:
        await ConflictRetries(NotedClock(), lambda: 0.0).run(transaction)
    assert raised.value.reason == str(ATTEMPTS_MAX - 1)
    assert transaction.attempts == ATTEMPTS_MAX


@pytest.mark.parametrize("error", [DatabaseBusy("slow"), DatabaseUnavailable("gone"), ValueError()])
async def test_other_errors_are_raised_at_once(error: Exception) -> None:
    transaction = Transaction([error])
    with pytest.raises(type(error)):
        await ConflictRetries(FakeClock(), lambda: 0.0).run(transaction)
    assert transaction.attempts == 1
