"""The line of starts in workspaces that have no process yet.

The spawner is one thread, and creates the namespaces of a workspace before its first process, which
takes many times as long as a start. Starts in other workspaces would wait for all namespaces that
were asked for before them. So only a few first starts are sent at a time; the rest wait here, and
starts in workspaces that have their namespaces pass them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from parley.cache import BoundedCache
from toolrunner.primitives.domain import WorkspaceId

FIRST_STARTS_MAX: Final = 2
#: As many workspaces are known to have namespaces; a forgotten one waits once more.
BEGUN_MAX: Final = 4096


class WorkspaceEnded(Exception):
    """The workspace was ended while a start in it waited."""


class FirstStarts:
    """Lets starts pass, only a few at a time in workspaces without a process.

    Args:
        at_a_time: How many.
    """

    def __init__(self, at_a_time: int = FIRST_STARTS_MAX) -> None:
        self._places = asyncio.Semaphore(at_a_time)
        self._begun: BoundedCache[WorkspaceId, bool] = BoundedCache(BEGUN_MAX)
        #: How often each workspace was ended, while starts in it wait.
        self._ends = Counter[WorkspaceId]()
        self._waiting = Counter[WorkspaceId]()

    @asynccontextmanager
    async def turn(self, workspace_id: WorkspaceId) -> AsyncIterator[None]:
        """Wait until a start in a workspace may be sent; the context is to last until its answer.

        Raises:
            WorkspaceEnded: The workspace was ended meanwhile.
        """
        if self._begun.get(workspace_id):
            yield
            return
        ends = self._ends[workspace_id]
        self._waiting[workspace_id] += 1
        try:
            async with self._places:
                if self._ends[workspace_id] != ends:
                    raise WorkspaceEnded
                yield
                self._begun.put(workspace_id, True)
        finally:
            self._waiting[workspace_id] -= 1
            if not self._waiting[workspace_id]:
                del self._waiting[workspace_id], self._ends[workspace_id]

    def end(self, workspace_id: WorkspaceId) -> None:
        """Refuse the starts that wait, because their workspace is ended."""
        self._begun.pop(workspace_id)
        if self._waiting[workspace_id]:
            self._ends[workspace_id] += 1
