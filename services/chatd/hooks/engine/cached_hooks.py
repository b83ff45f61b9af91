"""The cached hooks of a process, so that events need no query.

A loop reads them at the start, after every change that is published over the bus, and periodically
in case a notice was lost. An event waits for a read only between a change and the end of that read.
"""

import asyncio
import logging

from chatd.hooks.domain.hooks import Hook, HookEvent
from chatd.hooks.domain.ports import StoredHooks
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

logger = logging.getLogger(__name__)

REPAIR_S = 30.0


class CachedHooks:
    """Caches all hooks."""

    def __init__(self, stored: StoredHooks, clock: Clock) -> None:
        self._stored = stored
        self._clock = clock
        self._hooks: tuple[Hook, ...] | None = None
        self._generation = 0
        self._changed = asyncio.Event()

    async def matching(self, event: HookEvent, tool_name: str = "") -> tuple[Hook, ...]:
        """Return the hooks of an event, the oldest first.

        Raises:
            DatabaseUnavailable: They changed and cannot be read.
        """
        hooks = await self._read() if self._hooks is None else self._hooks
        return tuple(hook for hook in hooks if hook.matches(event, tool_name))

    def are_absent(self, event: HookEvent) -> bool:
        """Return whether an event is known to have no hooks; False if they have to be read."""
        return self._hooks is not None and not any(event in hook.events for hook in self._hooks)

    def forget(self) -> None:
        """Forget the hooks, because they changed or a notice may have been lost."""
        self._generation += 1
        self._hooks = None
        self._changed.set()

    async def run(self) -> None:
        """Read the hooks outside of turns, after changes and periodically."""
        while True:
            self._changed.clear()
            try:
                await self._read()
            except DatabaseUnavailable:
                logger.warning("the hooks cannot be read; trying again")
            await is_set_within(self._changed, REPAIR_S, self._clock)

    async def _read(self) -> tuple[Hook, ...]:
        generation = self._generation
        hooks = await self._stored.all()
        if generation == self._generation:
            self._hooks = hooks
        return hooks
