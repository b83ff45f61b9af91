"""Retries of transactions that the server rolled back because of concurrent ones."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from parley.clock import Clock, backoff_s
from parley.postgres.errors import Deadlocked, SerializationFailed

ATTEMPTS_MAX: Final = 6
PAUSE_FIRST_S: Final = 0.05
PAUSE_LAST_S: Final = 0.8

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConflictRetries:
    """Repeats a transaction after a deadlock or a serialisation failure, a few times.

    The server has rolled it back, so it is safe to repeat. Other errors are raised at once.

    Attributes:
        clock: Waits between the attempts.
        jitter: Returns a number from 0 to 1: two transactions that conflict wait differently long.
    """

    clock: Clock
    jitter: Callable[[], float]

    async def run(self, transaction: Callable[[], Awaitable[T]]) -> T:
        """Return the result of the first attempt that is committed.

        Args:
            transaction: Executes one transaction, from its begin to its commit.

        Raises:
            Deadlocked: The last attempt ended in a deadlock.
            SerializationFailed: The last attempt met a concurrent change.
        """
        for failures in range(1, ATTEMPTS_MAX):
            try:
                return await transaction()
            except (Deadlocked, SerializationFailed):
                # The transaction that waits for these locks needs a moment to take them, or both
                # deadlock again.
                pause_s = backoff_s(failures, PAUSE_FIRST_S, PAUSE_LAST_S)
                await self.clock.sleep(pause_s * (1.0 + self.jitter()))
        return await transaction()
