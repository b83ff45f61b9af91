"""Handles failures of background tasks: they are logged and counted, and loops run again.

Only cancellation ends a background task with an error. The composition root itself awaits the
operations that may end a process: opening its dependencies, its listening sockets, and the stop
request.
"""

import logging
import random  # noqa: TID251 (only the type; it is an argument)
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.metrics import Counter, Meter

from parley.clock import Clock, backoff_s

FAILURES: Final = "parley.background.failures"
PAUSE_FIRST_S: Final = 0.1
PAUSE_LAST_S: Final = 30.0
#: A loop that ran this long before it failed is restarted after the shortest pause.
HEALTHY_S: Final = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Supervision:
    """Runs background work of one process so that failures do not leave it.

    Attributes:
        clock: Times the pause between a failure and the next run.
        rng: The jitter of the pauses of different processes.
        failures: Counts failures by the name of the task.
    """

    clock: Clock
    rng: random.Random
    failures: Counter

    @classmethod
    def of(cls, meter: Meter, clock: Clock, rng: random.Random) -> "Supervision":
        """Return the supervision of a process; failures are counted on `meter`."""
        failures = meter.create_counter(
            FAILURES,
            unit="{failure}",
            description="Failures of background tasks, by task; each is in the log with its cause.",
        )
        return cls(clock, rng, failures)

    async def keep(self, name: str, run: Callable[[], Awaitable[Any]]) -> None:
        """Run a loop until it returns, and run it again whenever it fails."""
        failures = 0
        while True:
            began_s = self.clock.monotonic()
            try:
                await run()
                return
            except Exception:
                self._note(name)
            is_healthy = self.clock.monotonic() - began_s >= HEALTHY_S
            failures = 1 if is_healthy else failures + 1
            pause_s = backoff_s(failures, PAUSE_FIRST_S, PAUSE_LAST_S)
            await self.clock.sleep(pause_s * self.rng.uniform(0.5, 1.0))

    async def once(self, name: str, work: Awaitable[Any]) -> None:
        """Run work that ends by itself."""
        try:
            await work
        except Exception:
            self._note(name)

    def _note(self, name: str) -> None:
        logger.exception("the background task %s failed; the process goes on", name)
        self.failures.add(1, {"task": name})
