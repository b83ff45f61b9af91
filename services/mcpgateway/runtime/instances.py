"""Instance files: that of this process, and those that prove the death of others."""

import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcpgateway.runtime.journal import Journal
from parley.clock import Clock
from parley.instance_file import dead_instances, lock_instance_file

logger = logging.getLogger(__name__)


class Instances:
    """The instance files of one directory; without one, only leases end.

    Args:
        directory: Where the processes of this machine have their files; None without one.
        journal: The journal, in which processes have leases.
    """

    def __init__(self, directory: Path | None, journal: Journal) -> None:
        self._directory = directory
        self._journal = journal

    @classmethod
    @asynccontextmanager
    async def open(
        cls, path: Path | None, process_id: str, journal: Journal, clock: Clock
    ) -> "AsyncIterator[Instances]":
        """End the dead, then hold the file of this process until the end."""
        if path is None:
            yield cls(None, journal)
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        instances = cls(path.parent, journal)
        await instances.end_dead()
        locked = await lock_instance_file(path, process_id, clock)
        try:
            yield instances
        finally:
            if locked is not None:
                locked.clear()
                locked.close()

    async def end_dead(self) -> None:
        """End the leases of the processes of this machine whose file can be locked.

        Raises:
            DatabaseUnavailable: The files stay as they are.
        """
        if self._directory is None:
            return
        for found in dead_instances(self._directory):
            if not _is_uuid(found.named):
                logger.warning("%s names no mcpgateway and is cleared", found.path.name)
                found.clear()
                continue
            logger.warning("an mcpgateway of this machine has died", extra={"id": found.named})
            await self._journal.end_process(found.named)
            found.clear()


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
