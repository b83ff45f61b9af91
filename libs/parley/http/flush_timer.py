"""The flush timer of a process: until when received bytes are held to be handled together."""

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
