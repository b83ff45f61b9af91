"""A flush timer that a test triggers."""

import asyncio
from collections.abc import Callable


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
