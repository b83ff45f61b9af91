"""The beat of the process, as far as reading needs it: when bytes had better wait for others."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class FlushTimer(Protocol):
    """Moments at which a process does together what can wait, as those of the engine are."""

    @property
    def is_late(self) -> bool:
        """Return whether the process has so much to do that what can wait had better wait."""
        ...

    def at_next_flush(self, do: Callable[[], None]) -> None:
        """Do something on the next beat; it neither waits nor raises."""
        ...


class NoFlushTimer:
    """The beats of a process that is never late."""

    @property
    def is_late(self) -> bool:
        """Return that nothing waits."""
        return False

    def at_next_flush(self, do: Callable[[], None]) -> None:
        """Do it at once: there is no other moment."""
        do()


class FakeFlushTimer:
    """Beats that come when a test says so, of a process that is late."""

    def __init__(self) -> None:
        self.is_late = True
        self._waiting: list[Callable[[], None]] = []
        self._is_awaited = asyncio.Event()

    @property
    def awaited(self) -> int:
        """How many wait for the next beat."""
        return len(self._waiting)

    def at_next_flush(self, do: Callable[[], None]) -> None:
        """Do something when the test beats."""
        self._waiting.append(do)
        self._is_awaited.set()

    async def until_awaited(self) -> None:
        """Wait until somebody waits for the next beat."""
        await self._is_awaited.wait()

    def flush(self) -> None:
        """Do what waits."""
        waiting, self._waiting = self._waiting, []
        self._is_awaited.clear()
        for do in waiting:
            do()
