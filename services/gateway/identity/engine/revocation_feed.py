"""The revoked tokens as cached in this process, for any number of watchers.

One task reads the database: at the start, on each notice that a token changed, and every few
seconds in case a notice was lost. Watchers wait in memory, so they cause no database load.
"""

import asyncio
import logging
from typing import NoReturn

from gateway.identity.domain import RevokedSet
from gateway.identity.engine.service_tokens import TOPIC
from gateway.identity.errors import FeedStopped
from gateway.identity.store.service_tokens import TokenStore
from parley.bus import Bus
from parley.clock import Clock
from parley.identity import RevocationsUnknown
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

POLL_S = 5.0

_log = logging.getLogger(__name__)


class RevocationFeed:
    """The revoked service tokens; `run` keeps the cache up to date."""

    def __init__(self, tokens: TokenStore, *, bus: Bus, clock: Clock) -> None:
        self._tokens = tokens
        self._bus = bus
        self._clock = clock
        self._known: RevokedSet | None = None
        self._ids: frozenset[str] = frozenset()
        self._is_stopped = False
        self._wakeup = asyncio.Event()
        self._changed = asyncio.Event()

    def is_revoked(self, token_id: str) -> bool:
        """Return whether the token is revoked.

        Raises:
            RevocationsUnknown: The database has not been read yet.
        """
        if self._known is None:
            raise RevocationsUnknown
        return token_id in self._ids

    async def current(self) -> RevokedSet:
        """Return the set; wait for the first read if necessary.

        Raises:
            FeedStopped: This process stops.
        """
        while self._known is None:
            self._check_running()
            await self._changed.wait()
        return self._known

    async def newer_than(self, version: int, *, within_s: float) -> RevokedSet | None:
        """Return the set once its version exceeds `version`; None after `within_s` seconds.

        Raises:
            FeedStopped: This process stops.
        """
        give_up_at = self._clock.monotonic() + within_s
        while True:
            self._check_running()
            if self._known is not None and self._known.version > version:
                return self._known
            remaining_s = give_up_at - self._clock.monotonic()
            if remaining_s <= 0:
                return None
            await is_set_within(self._changed, remaining_s, self._clock)

    def stop(self) -> None:
        """Wake and end all watchers."""
        self._is_stopped = True
        self._announce()

    async def run(self) -> NoReturn:
        """Read the database repeatedly until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen())
            while True:
                self._wakeup.clear()
                await self._refresh()
                await is_set_within(self._wakeup, POLL_S, self._clock)

    async def _listen(self) -> None:
        async with self._bus.subscribe(TOPIC) as items:
            async for _ in items:
                self._wakeup.set()

    async def _refresh(self) -> None:
        try:
            found = await self._tokens.revoked(now=self._clock.now())
        except DatabaseUnavailable as error:
            # The cached set stays valid: a revoked token is never accepted again.
            _log.warning("revoked tokens were not read again: %s", error)
            return
        is_newer = self._known is None or found.version != self._known.version
        self._known = found
        self._ids = frozenset(token.id for token in found.tokens)
        if is_newer:
            self._announce()

    def _announce(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _check_running(self) -> None:
        if self._is_stopped:
            raise FeedStopped
