"""Keeps the file of a running supervisor's processes up to date, also after a full disk."""

import os

import psutil

from parley.cli.progress import Progress
from parley.cli.stack.spec import Stack
from parley.cli.supervision import process_table
from parley.cli.supervision.database import StackDatabase
from parley.cli.supervision.process_table import ProcessIdentity, ProcessRecord, ProcessTable
from parley.clock import Clock

SAVE_AGAIN_S = 5.0


class ProcessTableWriter:
    """Writes `processes.json`: the last reported services, and the database."""

    def __init__(self, stack: Stack, found: StackDatabase, progress: Progress) -> None:
        self.stack = stack
        self.database = found
        self._progress = progress
        self._services: tuple[ProcessRecord, ...] = ()
        self._is_saved = True

    def save(self, services: tuple[ProcessRecord, ...]) -> None:
        """Save these services, and the current state of the database."""
        self._services = services
        self.repeat()

    def repeat(self) -> None:
        """Save the last reported services, and the current state of the database."""
        path = self.stack.home.processes_file
        # Whatever fails here, `repair` tries again.
        was_saved, self._is_saved = self._is_saved, False
        try:
            process_table.save(self._table(), path)
            self._is_saved = True
        except (OSError, psutil.Error) as error:
            # A full disk, or no free descriptors, must not stop running processes.
            if was_saved:
                reason = getattr(error, "strerror", None) or error
                self._progress.say(
                    f"  {path} cannot be written ({reason}): `parley status` is out of "
                    "date until it can"
                )

    def _table(self) -> ProcessTable:
        first = self.database.record()
        return ProcessTable(
            supervisor=own_identity(),
            http=self.stack.ports.http[0].url,
            processes=(() if first is None else (first,)) + self._services,
            public_url=self.stack.public_url,
        )

    async def repair(self, clock: Clock) -> None:
        """Retry failed saves, until this is cancelled."""
        while True:
            await clock.sleep(SAVE_AGAIN_S)
            if not self._is_saved:
                self.repeat()


def own_identity() -> ProcessIdentity:
    """Return the identity of this process."""
    return ProcessIdentity(os.getpid(), psutil.Process().create_time())
