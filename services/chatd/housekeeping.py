"""Periodic deletion of expired rows."""

import logging
from collections.abc import Callable
from typing import Protocol

from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

EVERY_S = 60.0
ROWS_MAX = 1000
PAUSE_S = 0.5

logger = logging.getLogger(__name__)


class Housekeeping(Protocol):
    """Deletes expired rows."""

    async def delete_expired(self, rows_max: int) -> bool:
        """Delete at most that many rows of each kind; return whether there may be more.

        Raises:
            DatabaseUnavailable: Nothing was deleted, or the outcome is unknown.
        """
        ...


class HousekeepingLoop:
    """Deletes expired rows in small batches, at times that differ between processes."""

    def __init__(
        self, housekeeping: Housekeeping, clock: Clock, *, jitter: Callable[[], float]
    ) -> None:
        self._housekeeping = housekeeping
        self._clock = clock
        self._jitter = jitter

    async def run(self) -> None:
        """Delete until cancelled; rows that one round leaves are found by the next."""
        while True:
            await self._clock.sleep(EVERY_S * (0.75 + 0.5 * self._jitter()))
            try:
                while await self._housekeeping.delete_expired(ROWS_MAX):
                    await self._clock.sleep(PAUSE_S)
            except DatabaseUnavailable as outage:
                logger.warning("nothing was tidied: %s", outage)
            except Exception:
                logger.exception("tidying failed")
