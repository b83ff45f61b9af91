"""The janitor of a process: now and then it removes what nobody needs any more."""

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
    """Where things gather that are over."""

    async def delete_expired(self, rows_max: int) -> bool:
        """Remove at most that many of each kind; return whether there may be more.

        Raises:
            DatabaseUnavailable: nothing was removed, or nobody knows.
        """
        ...


class HousekeepingLoop:
    """Tidies in small batches, at moments that differ between processes."""

    def __init__(
        self, housekeeping: Housekeeping, clock: Clock, *, jitter: Callable[[], float]
    ) -> None:
        self._housekeeping = housekeeping
        self._clock = clock
        self._jitter = jitter

    async def run(self) -> None:
        """Tidy for ever; what one round leaves, the next one finds."""
        while True:
            await self._clock.sleep(EVERY_S * (0.75 + 0.5 * self._jitter()))
            try:
                while await self._housekeeping.delete_expired(ROWS_MAX):
                    await self._clock.sleep(PAUSE_S)
            except DatabaseUnavailable as outage:
                logger.warning("nothing was tidied: %s", outage)
            except Exception:
                logger.exception("tidying failed")
