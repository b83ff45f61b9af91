"""Time that jumps where nobody has anything to do, over real sockets of this one process.

An event loop looks at its sockets before it waits for a timer. This one lets time jump to the timer
instead, once no socket of either side has news. All that talks must run in the same loop: what
another process or thread is about to send is not waited for.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, ParamSpec

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
# Bytes on their way to a socket of this machine need no longer than that.
UNDER_WAY_S = 0.001
STUCK_S = 10.0

Params = ParamSpec("Params")


class Stuck(Exception):
    """Everybody waits, no timer is set, and no socket has news."""


class JumpingSelector(selectors.DefaultSelector):
    """Counts the seconds that were waited for without waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what has news now; if nothing has, let the time pass at once."""
        if timeout is not None and timeout <= 0:
            return super().select(0)
        found = super().select(STUCK_S if timeout is None else UNDER_WAY_S)
        if found:
            return found
        if timeout is None:
            raise Stuck
        self.elapsed_s += timeout
        return []


class JumpingLoop(asyncio.SelectorEventLoop):
    """Runs in virtual time."""

    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._jumping.elapsed_s


class LoopClock:
    """The time of the running loop as a `Clock`."""

    def now(self) -> datetime:
        """Return the virtual time as a date."""
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return asyncio.get_running_loop().time()

    async def sleep(self, delay_s: float) -> None:
        """Return after virtual seconds."""
        await asyncio.sleep(delay_s)  # noqa: TID251 (this is the clock)


def in_virtual_time(
    test: Callable[Params, Coroutine[Any, Any, None]],
) -> Callable[Params, None]:
    """Make a test of a coroutine that runs in a loop of its own, whose time jumps."""

    @wraps(test)
    def run(*args: Params.args, **kwargs: Params.kwargs) -> None:
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
