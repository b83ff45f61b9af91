"""The order in which processes that ended at the same time are started again.

Most of a start is importing, so processes that start at once only delay each other. After a crash
of everything the process that continues the turns is therefore started before the others. A slot is
held until its process is ready, but not for long: some are ready only when another one is.
"""

import asyncio
from dataclasses import dataclass

from parley.clock import Clock

#: Processes whose pauses end within this time of each other are ordered by rank.
TOGETHER_S = 0.1
HELD_S_MAX = 3.0


class RestartSlot:
    """Permission to start one process; releasing it twice is harmless."""

    def __init__(self, queue: "RestartQueue", until_s: float) -> None:
        self._queue = queue
        self._until_s = until_s
        self._is_held = True

    def release(self) -> None:
        """Let the next process start."""
        if self._is_held:
            self._is_held = False
            self._queue.freed()

    def expire(self, now_s: float) -> None:
        """Release it if it has been held for long enough."""
        if now_s >= self._until_s:
            self.release()


@dataclass(eq=False, slots=True)
class _Waiting:
    rank: int
    due_s: float
    turn: asyncio.Future[None]


class RestartQueue:
    """Assigns slots to processes that are to be started again, the lowest rank first.

    Args:
        slots: How many processes may start concurrently.
        clock: The clock.
    """

    def __init__(self, slots: int, clock: Clock) -> None:
        self._free = slots
        self._clock = clock
        self._waiting: list[_Waiting] = []

    async def slot(self, rank: int, pause_s: float) -> RestartSlot:
        """Wait for `pause_s` and then for a slot."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(rank, self._clock.monotonic() + pause_s, loop.create_future())
        self._waiting.append(waiting)
        await self._clock.sleep(pause_s)
        self._assign()
        await waiting.turn
        return RestartSlot(self, self._clock.monotonic() + HELD_S_MAX)

    def freed(self) -> None:
        """Assign a slot that was released."""
        self._free += 1
        self._assign()

    def _assign(self) -> None:
        until_s = self._clock.monotonic() + TOGETHER_S
        due = [each for each in self._waiting if each.due_s <= until_s]
        for waiting in sorted(due, key=lambda each: each.rank)[: self._free]:
            self._waiting.remove(waiting)
            self._free -= 1
            if not waiting.turn.done():
                waiting.turn.set_result(None)
