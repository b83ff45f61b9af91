"""Fills the search index in the background."""

import logging
from collections.abc import Callable
from typing import NoReturn, Protocol

from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

EVERY_S = 2.0
PAUSE_S = 0.05

logger = logging.getLogger(__name__)


class Index(Protocol):
    """The index of what was written."""

    async def advance(self) -> bool:
        """Index the next chats that changed; return whether there may be more.

        Raises:
            DatabaseUnavailable: Nothing was indexed, or the outcome is unknown.
        """
        ...


class SearchIndexing:
    """Indexes what changed every few seconds, at times that differ between processes."""

    def __init__(self, index: Index, clock: Clock, *, jitter: Callable[[], float]) -> None:
        self._index = index
        self._clock = clock
        self._jitter = jitter

    async def run(self) -> NoReturn:
        """Index until cancelled; what one round leaves is found by the next."""
        while True:
            await self._clock.sleep(EVERY_S * (0.75 + 0.5 * self._jitter()))
            try:
                while await self._index.advance():
                    await self._clock.sleep(PAUSE_S)
            except DatabaseUnavailable as outage:
                logger.warning("nothing was indexed for searches: %s", outage)
