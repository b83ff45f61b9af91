"""Stores model calls that are under way, so that their cost is charged after a crash.

Written behind the calls, for all chats of this process together: a call that ends within half a
second is not written. Calls of a process that died are charged by any other one.
"""

import logging
from dataclasses import dataclass

from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.domain.ledger import OpenCall, StoredOpenCalls
from chatd.turns.engine.metering import MeteredCall
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

WRITE_EVERY_S = 0.5
CHARGE_EVERY_S = 5.0
CHARGED_MAX = 100  # Abandoned calls charged per statement.

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Open:
    """A call: when it began, and how it was stored last."""

    chat_id: ChatId
    owner_id: OwnerId
    opened_s: float
    stored: OpenCall | None = None
    output_tokens: int = -1


class OpenCallWriter:
    """A `CallObserver` that stores the calls."""

    def __init__(self, calls: StoredOpenCalls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._open: dict[MeteredCall, _Open] = {}
        self._ended: list[OpenCall] = []
        self._charged_s = clock.monotonic()

    def opened(self, call: MeteredCall, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Observe a call that begins."""
        self._open[call] = _Open(chat_id, owner_id, self._clock.monotonic())

    def closed(self, call: MeteredCall) -> None:
        """Remove a call whose bill is settled."""
        known = self._open.pop(call, None)
        if known is not None and known.stored is not None:
            self._ended.append(known.stored)

    async def run(self) -> None:
        """Write and charge until cancelled; a failure is logged and the next round continues."""
        while True:
            await self._clock.sleep(WRITE_EVERY_S)
            try:
                await self._write()
                await self._charge()
            except DatabaseUnavailable as error:
                logger.warning("calls under way were not stored: %s", error)
            except Exception:
                logger.exception("calls under way were not stored")

    async def _write(self) -> None:
        now_s = self._clock.monotonic()
        changed: list[_Open] = []
        for call, known in self._open.items():
            if now_s - known.opened_s < WRITE_EVERY_S or known.output_tokens == call.output_tokens:
                continue
            entry = call.entry_so_far(known.chat_id)
            if entry is not None:
                known.stored = OpenCall(entry, known.owner_id)
                known.output_tokens = call.output_tokens
                changed.append(known)
        ended, self._ended = tuple(self._ended), []
        if not changed and not ended:
            return
        try:
            await self._calls.write(tuple(each.stored for each in changed if each.stored), ended)
        except BaseException:
            self._ended[:0] = ended
            for each in changed:
                each.output_tokens = -1  # Written again in the next round.
            raise

    async def _charge(self) -> None:
        now_s = self._clock.monotonic()
        if now_s - self._charged_s < CHARGE_EVERY_S:
            return
        self._charged_s = now_s
        charged = await self._calls.charge_abandoned(CHARGED_MAX)
        if charged:
            logger.info("%d calls of processes that died were charged by estimate", charged)
