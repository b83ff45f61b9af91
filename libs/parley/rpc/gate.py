"""Admission of calls to a server: counts running calls and refuses new ones while draining."""

import asyncio


class Gate:
    """Counts the running calls and can be closed for new ones.

    Attributes:
        running: Calls being served now.
        is_draining: Whether new calls are refused.
    """

    __slots__ = ("_is_empty", "is_draining", "running")

    def __init__(self) -> None:
        self.running = 0
        self.is_draining = False
        self._is_empty = asyncio.Event()

    def leave(self) -> None:
        """Record that a call has ended."""
        self.running -= 1
        if self.is_draining and self.running == 0:
            self._is_empty.set()

    def close(self) -> None:
        """Refuse calls from now on."""
        self.is_draining = True
        if self.running == 0:
            self._is_empty.set()

    async def wait_until_empty(self, limit_s: float) -> bool:
        """Wait at most `limit_s` for the running calls; return whether all ended."""
        try:
            async with asyncio.timeout(limit_s):
                await self._is_empty.wait()
        except TimeoutError:
            return False
        return True
