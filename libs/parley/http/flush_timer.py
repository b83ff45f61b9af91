"""The flush timer of a process: until when received bytes are held to be handled together."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class FlushTimer(Protocol):
    """The times at which a process flushes deferred work; implemented by the engine."""

    @property
    def is_late(self) -> bool:
        """Return whether the process is so loaded that work that can wait should wait."""
        ...

    def at_next_flush(self, do: Callable[[], None]) -> None:
        """Call `do` at the next flush; it must neither block nor raise."""
        ...


class NoFlushTimer:
    """The flush timer of a process that is never late."""

    @property
    def is_late(self) -> bool:
        """Return False: no work is deferred."""
        return False

    def at_next_flush(self, do: Callable[[], None]) -> None:
        """Call `do` immediately."""
        do()


class FakeFlushTimer:
    """A flush timer that a test triggers, of a process that is late."""

    def __init__(self) -> None:
        self.is_late = True
        self._waiting: list[Callable[[], None]] = []
        self._is_awaited = asyncio.Event()

    @property
    def awaited(self) -> int:
        """The number of callbacks that wait for the next flush."""
        return len(self._waiting)

    def at_next_flush(self, do: Callable[[], None]) -> None:
        """Call `do` when the test calls `flush`."""
        self._waiting.append(do)
        self._is_awaited.set()

    async def until_awaited(self) -> None:
        """Wait until a callback waits for the next flush."""
        await self._is_awaited.wait()

    def flush(self) -> None:
        """Call the waiting callbacks."""
        waiting, self._waiting = self._waiting, []
        self._is_awaited.clear()
        for do in waiting:
            do()
