"""Masking of secrets in the output of adopted processes, whose values the earlier service had."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from parley.clock import Clock
from toolrunner.egress import SecretUnavailable
from toolrunner.egress.listeners import EgressRoutes
from toolrunner.processes.live_process import LiveProcess

#: The delay before values that were not available are requested again, doubled each time.
AGAIN_S: Final = 1.0
AGAIN_MAX_S: Final = 30.0
#: The number of processes whose values are requested at once.
TOGETHER: Final = 8

logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Unmasked:
    """A process of which some secrets may not be masked yet.

    Attributes:
        live: The process.
        settled: Names of secrets that are masked, or will never be available.
        is_reported: Whether a delay was logged.
    """

    live: LiveProcess
    settled: set[str] = field(default_factory=set)
    is_reported: bool = False


@dataclass(frozen=True, slots=True)
class AdoptedMasks:
    """Requests the secrets of adopted processes until all are masked.

    Attributes:
        egress: Returns the secrets.
        clock: For the delays.
        unmasked: The processes that print and have secrets that are not masked yet.
    """

    egress: EgressRoutes
    clock: Clock
    unmasked: list[_Unmasked] = field(default_factory=list)

    def add(self, live: LiveProcess) -> None:
        """Add an adopted process."""
        self.unmasked.append(_Unmasked(live))

    async def run(self) -> None:
        """Mask the output of all processes; returns when there is none left to mask."""
        delay_s = AGAIN_S
        while True:
            slots = asyncio.Semaphore(TOGETHER)
            async with asyncio.TaskGroup() as tasks:
                for each in tuple(self.unmasked):
                    tasks.create_task(self._mask(each, slots))
            if not self.unmasked:
                return
            await self.clock.sleep(delay_s)
            delay_s = min(2 * delay_s, AGAIN_MAX_S)

    async def _mask(self, each: _Unmasked, slots: asyncio.Semaphore) -> None:
        live, is_complete = each.live, True
        async with slots:
            record = live.record
            for grant in self.egress.variable_grants(record.workspace_id):
                if live.drained.is_set():
                    break
                if grant.name in each.settled:
                    continue
                try:
                    value = await self.egress.secret_text(
                        record.workspace_id, record.process_id, grant
                    )
                except SecretUnavailable as error:
                    is_complete &= error.is_final
                    self._report(each, error)
                    if not error.is_final:
                        continue
                else:
                    live.hide((value,))
                each.settled.add(grant.name)
        if is_complete or live.drained.is_set():
            self.unmasked.remove(each)

    def _report(self, each: _Unmasked, error: SecretUnavailable) -> None:
        process_id = each.live.record.process_id
        if error.is_final:
            logger.warning("output of %s is not masked any more: %s", process_id, error)
        elif not each.is_reported:
            each.is_reported = True
            logger.warning("output of %s is not masked yet: %s", process_id, error)
