"""Processes that need an owner: an attachment with which they end.

Theory: no attachment outlives this service, so ownership itself is not in the journal. What is
there is that a process needs an owner. One that no owner claims soon after its start is ended,
because its caller is gone; so is one that outlived an earlier run of the service, and with it its
owner.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from parley.tasks import Starter
from toolrunner.primitives.domain import ProcessId
from toolrunner.spawner.client.spawner import GRACE_S, Spawner

#: How long after its start a process waits for its owner.
CLAIM_S: Final = 15.0


class Ownership:
    """Ends processes whose owner is gone, or never came.

    Args:
        spawner: Ends processes.
        tasks: Owns what ends them.
    """

    def __init__(self, spawner: Spawner, tasks: Starter) -> None:
        self._spawner = spawner
        self._tasks = tasks
        self._unclaimed: dict[ProcessId, asyncio.TimerHandle] = {}

    def expect(self, process_id: ProcessId) -> None:
        """End a process that was just started unless it is claimed soon."""
        loop = asyncio.get_running_loop()
        self._unclaimed[process_id] = loop.call_later(CLAIM_S, self._end_unclaimed, process_id)

    @contextmanager
    def claimed(self, process_id: ProcessId) -> Iterator[None]:
        """Own a process in a context; at its end the process ends, with all that it started."""
        timer = self._unclaimed.pop(process_id, None)
        if timer is not None:
            timer.cancel()
        try:
            yield
        finally:
            self.end(process_id)

    def end(self, process_id: ProcessId) -> None:
        """End a process that has no owner any more."""
        self._tasks.create_task(self._spawner.end(process_id, GRACE_S), name="processes.end")

    def close(self) -> None:
        """Wait for no owner any more: all processes end with the service."""
        for timer in self._unclaimed.values():
            timer.cancel()
        self._unclaimed.clear()

    def _end_unclaimed(self, process_id: ProcessId) -> None:
        del self._unclaimed[process_id]
        self.end(process_id)
