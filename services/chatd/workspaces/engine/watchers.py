"""Waits for changes of workspaces: woken by notices, and by polling in case one is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from chatd.workspaces.domain.workspace import DRIVEN, Workspace
from parley.clock import Clock
from parley.tasks import is_set_within

#: Poll interval without a notice.
LOOK_S = 2.0


class Changes:
    """Wakes requests that wait for a workspace."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._listening: list[Callable[[str | None], None]] = []

    def listen(self, hear: Callable[[str | None], None]) -> None:
        """Call `hear` with each workspace that changes, and with None when notices may be lost."""
        self._listening.append(hear)

    def on_notice(self, workspace_id: str) -> None:
        """Handle the notice that a workspace changed, in this or another process."""
        for hear in self._listening:
            hear(workspace_id)
        self._wake(workspace_id)

    def _wake(self, workspace_id: str) -> None:
        for event in self._waiting.get(workspace_id, ()):
            event.set()

    def on_resync(self) -> None:
        """Handle that notices may have been lost."""
        for hear in self._listening:
            hear(None)
        for workspace_id in list(self._waiting):
            self._wake(workspace_id)

    async def next(self, workspace_id: str, within_s: float = LOOK_S) -> None:
        """Return after the next change of a workspace, or after a timeout."""
        event = asyncio.Event()
        self._waiting.setdefault(workspace_id, set()).add(event)
        try:
            await is_set_within(event, within_s, self._clock)
        finally:
            self._waiting[workspace_id].discard(event)
            if not self._waiting[workspace_id]:
                del self._waiting[workspace_id]

    async def settled(
        self,
        workspace_id: str,
        read: Callable[[], Awaitable[Workspace]],
        within_s: float,
    ) -> Workspace:
        """Return a workspace once it has settled, or its current state after a timeout."""
        workspace = await read()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while workspace.state in DRIVEN:
                    await self.next(workspace_id)
                    workspace = await read()
        return workspace
