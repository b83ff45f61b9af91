"""Periodic removal of old processes, their output and journal entries."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from parley.clock import Clock
from toolrunner.directories.workspaces import Workspaces
from toolrunner.journal.journal import Journal
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import ProcessId, WorkspaceId
from toolrunner.primitives.errors import JournalFailed
from toolrunner.processes.output.log import remove_logs
from toolrunner.processes.registry import Registry

REAP_EVERY_S: Final = 60.0
FINISHED_KEPT: Final = timedelta(hours=1)
#: Afterwards a tombstone is kept, which prevents that the call is executed again.
ACKNOWLEDGED_KEPT: Final = timedelta(hours=1)
#: Of entries that are never acknowledged: of a caller that was killed, and of users.
UNACKNOWLEDGED_KEPT: Final = timedelta(days=7)
#: Of removed workspaces, unless a setting says otherwise.
REMOVED_KEPT: Final = timedelta(minutes=1)
PRUNED_AT_ONCE_MAX: Final = 2000
#: Per workspace.
FINISHED_KEPT_MAX: Final = 200

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reaper:
    """Removes finished processes, their output and acknowledged entries when they are old.

    Attributes:
        on_pruned: Is called with the number of entries that were replaced by tombstones.
        removed_kept: How long entries of removed workspaces are kept, so that the answer to an
            interrupted request can still be given.
    """

    journal: JournalThread
    registry: Registry
    workspaces: Workspaces
    clock: Clock
    on_pruned: Callable[[int], None]
    removed_kept: timedelta = REMOVED_KEPT

    async def run(self) -> None:
        """Reap periodically."""
        every_s = min(REAP_EVERY_S, self.removed_kept.total_seconds())
        while True:
            await self.clock.sleep(every_s)
            try:
                await self.reap()
            except JournalFailed:
                logger.exception("what is old stays for now")

    async def reap(self) -> None:
        """Reap once."""
        now = self.clock.now()
        await self._prune(now)
        old = await self.journal.run(
            lambda journal: journal.expire(
                ended_before=now - FINISHED_KEPT, kept_max=FINISHED_KEPT_MAX
            )
        )
        gone: dict[WorkspaceId, set[ProcessId]] = {}
        for workspace_id, process_id in old:
            live = self.registry.live(process_id)
            if live is None or live.drained.is_set():
                self.registry.leave(process_id)
                gone.setdefault(workspace_id, set()).add(process_id)
        for workspace_id, process_ids in gone.items():
            # In a thread: there may be thousands of them.
            await asyncio.to_thread(remove_logs, self.workspaces.at(workspace_id).logs, process_ids)

    async def _prune(self, now: datetime) -> None:
        """Replace old entries by tombstones, and delete those of removed workspaces.

        In small transactions, so that calls need not wait for all of them.
        """
        pruned = PRUNED_AT_ONCE_MAX
        while pruned == PRUNED_AT_ONCE_MAX:
            pruned = await self.journal.run(
                lambda journal: journal.prune(
                    acknowledged_before=now - ACKNOWLEDGED_KEPT,
                    finished_before=now - UNACKNOWLEDGED_KEPT,
                    at_once_max=PRUNED_AT_ONCE_MAX,
                )
            )
            self.on_pruned(pruned)
        known = await self.journal.run(
            lambda journal: journal.recorded_workspaces(now - self.removed_kept)
        )
        for workspace_id in await asyncio.to_thread(self.workspaces.missing, known):
            await self.journal.run(partial(Journal.forget_workspace, workspace_id=workspace_id))
