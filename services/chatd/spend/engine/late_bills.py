"""Enters bills of calls that are no part of a commit of their chat into the ledger."""

import asyncio
import logging
from contextlib import suppress

from chatd.primitives.domain.ids import OwnerId
from chatd.spend.domain.ledger import Ledger, LedgerEntry
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

WAITING_MAX = 10_000
ATTEMPTS_MAX = 5
PAUSE_S = 1.0

logger = logging.getLogger(__name__)


class DeferredBills:
    """Enters bills, at once or one after another in the background.

    A bill that cannot be entered, because the database is away for long, is logged completely and
    dropped: no answer fails because of it.
    """

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._waiting: asyncio.Queue[tuple[LedgerEntry, OwnerId]] = asyncio.Queue(WAITING_MAX)

    def add(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        """Queue a bill without waiting."""
        try:
            self._waiting.put_nowait((entry, owner_id))
        except asyncio.QueueFull:
            _lost(entry, "too many wait")

    async def enter(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        """Enter a bill before its answer is used; if the caller is cancelled, it is queued."""
        try:
            await self._enter(entry, owner_id)
        except asyncio.CancelledError:
            self.add(entry, owner_id)
            raise

    async def run(self) -> None:
        """Enter queued bills until cancelled."""
        while True:
            entry, owner_id = await self._waiting.get()
            try:
                await self._enter(entry, owner_id)
            finally:
                self._waiting.task_done()

    async def flushed_within(self, limit_s: float) -> None:
        """Wait until all queued bills are entered or dropped, at most `limit_s` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._waiting.join()

    async def _enter(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                await self._ledger.enter(entry, owner_id)
            except DatabaseUnavailable:
                if attempt < ATTEMPTS_MAX:
                    await self._clock.sleep(PAUSE_S)
            except Exception:
                logger.exception("a bill could not be entered", extra={"chat_id": entry.chat_id})
                break
            else:
                return
        _lost(entry, "the database cannot be reached")


def _lost(entry: LedgerEntry, reason: str) -> None:
    logger.error("a bill is lost, %s: %s", reason, entry, extra={"chat_id": entry.chat_id})
