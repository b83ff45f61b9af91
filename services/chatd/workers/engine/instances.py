"""The instance file of this process, and the ends of workers whose death it proves."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from chatd.primitives.domain.ids import WorkerId
from parley.clock import Clock
from parley.instance_file import InstanceFile, dead_instances

logger = logging.getLogger(__name__)

#: How long another process that starts may hold the file while it looks into it.
LOOKED_AT_S_MAX = 2.0
LOOK_AGAIN_S = 0.05

EndWorker = Callable[[WorkerId], Awaitable[object]]


async def end_dead_workers(directory: Path, end: EndWorker) -> None:
    """End every worker of this machine whose instance file can be locked, which proves its death.

    Raises:
        DatabaseUnavailable: The database cannot be reached; the files stay as they are.
    """
    for found in dead_instances(directory):
        logger.info("a process of this machine has died", extra={"worker_id": found.named})
        await end(WorkerId(found.named))
        found.clear()


async def lock_instance_file(path: Path, worker_id: WorkerId, clock: Clock) -> InstanceFile | None:
    """Lock the file of this process and name the worker in it; None if another process has it."""
    give_up_at = clock.monotonic() + LOOKED_AT_S_MAX
    while (locked := InstanceFile.lock(path)) is None:
        if clock.monotonic() >= give_up_at:
            logger.error("%s is locked by another process", path)
            return None
        await clock.sleep(LOOK_AGAIN_S)
    locked.name(worker_id)
    return locked
