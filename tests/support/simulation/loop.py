"""An event loop whose time is virtual, and in which whole processes can be stopped or die.

Nothing waits: when nobody is ready, time jumps to the next timer. Every callback knows by its
context which simulated process it belongs to, so one of them can be frozen between any two of its
steps while the others and time go on. Runs are repeatable: order depends on nothing but the code.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVarTuple

from support.chatd.turns.journaling_tools import Crash

Ts = TypeVarTuple("Ts")

STEPS_MAX = 150_000
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Host:
    """A process as the loop sees it: it runs, is stopped, or is dead.

    Attributes:
        resumed_at_s: When it last went on after it had been stopped.
        troubled_at_s: Until when a message of its own is slow, or when one was lost.
        cut_off_until_s: Until when nothing of it reaches the database.
    """

    def __init__(self) -> None:
        self.is_dead = False
        self.is_stopped = False
        self.resumed_at_s = -1.0
        self.troubled_at_s = -1.0
        self.cut_off_until_s = -1.0
        self._parked: list[Step] = []
        self._steps_left: int | None = None
        self._surprise: Callable[[], None] = lambda: None

    def require_life(self) -> None:
        """Let nothing of a dead process reach the world.

        Raises:
            Crash: it is dead; this winds up its tasks.
        """
        if self.is_dead:
            raise Crash

    def trouble(self, until_s: float) -> None:
        """Note that the process is hindered until then."""
        self.troubled_at_s = max(self.troubled_at_s, until_s)

    def surprise_after(self, steps: int, surprise: Callable[[], None]) -> None:
        """Have something happen to the process in the middle of its work, that many steps on."""
        self._steps_left = steps
        self._surprise = surprise

    def admits(self, step: "Step") -> bool:
        """Return whether a step of this process may run; if not it is kept for later."""
        if self._steps_left is not None:
            self._steps_left -= 1
            if self._steps_left <= 0:
                self._steps_left = None
                self._surprise()
        if self.is_stopped and not self.is_dead:
            self._parked.append(step)
            return False
        return True

    def unparked(self) -> "list[Step]":
        """Return the steps that were kept, once."""
        parked, self._parked = self._parked, []
        return parked


HOST: ContextVar[Host | None] = ContextVar("HOST", default=None)


class Stuck(Exception):
    """Nothing can happen any more, or everything at the same moment."""


class Step:
    """A callback that is due, or will be."""

    __slots__ = ("args", "callback", "context", "is_cancelled")

    def __init__(
        self, callback: Callable[..., object], args: tuple[object, ...], context: Context | None
    ) -> None:
        self.callback = callback
        self.args = args
        # An empty context is false, and it is the world's own.
        self.context = copy_context() if context is None else context
        self.is_cancelled = False

    def cancel(self) -> None:
        """Let it not happen."""
        self.is_cancelled = True


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs everything in virtual time."""

    _stopping: bool  # Of the base class, which its stubs keep for themselves.

    def __init__(self) -> None:
        super().__init__()
        self._elapsed_s = 0.0
        self._steps: deque[Step] = deque()
        self._timers: list[tuple[float, int, Step]] = []
        self._order = count()

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._elapsed_s

    def now(self) -> datetime:
        """Return the same as a date."""
        return EPOCH + timedelta(seconds=self._elapsed_s)

    def go_on(self, host: Host) -> None:
        """Let a stopped process run again, with everything that came due meanwhile."""
        host.is_stopped = False
        host.resumed_at_s = self._elapsed_s
        self._steps.extend(host.unparked())

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> Any:
        """Have something happen at this moment, after everything that is due already."""
        step = Step(callback, args, context)
        self._steps.append(step)
        return step

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> Any:
        """Have something happen at a moment."""
        step = Step(callback, args, context)
        heapq.heappush(self._timers, (when, next(self._order), step))
        return step

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> Any:
        """Have something happen after a while."""
        return self.call_at(self._elapsed_s + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        """Run everything until the loop is to stop; one call of many costs too much for each."""
        steps = self._steps
        for _ in range(STEPS_MAX):
            if not steps:
                self._jump()
            step = steps.popleft()
            if step.is_cancelled:
                continue
            context = step.context
            host = context.get(HOST)
            if host is None or host.admits(step):
                context.run(step.callback, *step.args)
            if self._stopping:
                return
        raise Stuck("it is busy without end")

    def _jump(self) -> None:
        """Let time pass until somebody has something to do."""
        timers = self._timers
        while timers and timers[0][2].is_cancelled:
            heapq.heappop(timers)
        if not timers:
            raise Stuck("everybody waits and no timer is set")
        self._elapsed_s = max(self._elapsed_s, timers[0][0])
        while timers and timers[0][0] <= self._elapsed_s:
            self._steps.append(heapq.heappop(timers)[2])


class VirtualClock:
    """The clocks of one process: its wall clock may be wrong, and it began to count somewhere."""

    def __init__(self, loop: VirtualLoop, host: Host, *, skew_s: float = 0.0) -> None:
        self._loop = loop
        self._host = host
        self._skew = timedelta(seconds=skew_s)
        self._offset_s = abs(skew_s) * 1000

    def now(self) -> datetime:
        """Return the time as this process believes it to be."""
        return self._loop.now() + self._skew

    def monotonic(self) -> float:
        """Return seconds since some moment of this process's own."""
        return self._loop.time() + self._offset_s

    async def sleep(self, delay_s: float) -> None:
        """Return after virtual seconds."""
        self._host.require_life()
        if delay_s <= 0:
            return
        woken: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_later(delay_s, _wake, woken)
        try:
            await woken
        finally:
            timer.cancel()


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
