"""The ends of workers whose death their instance files prove."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from chatd.primitives.domain.ids import WorkerId
from parley.instance_file import dead_instances

logger = logging.getLogger(__name__)

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
