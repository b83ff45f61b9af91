"""Cancelling work at every one of its awaits, in both ways in which that can happen."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from enum import Enum, auto
from typing import Any


class Moment(Enum):
    """When a cancellation meets an await."""

    BEFORE = auto()  # The answer has not come and is never heard.
    WITH_ANSWER = auto()  # The answer is there, but its reader is cancelled before it reads it.


async def cancelled_at_every_await(
    work: Callable[[], Coroutine[Any, Any, object]],
) -> AsyncIterator[tuple[int, Moment]]:
    """Run work again and again, cancelled at its first await, its second, and so on.

    Yields after each run; ends once work returns because it has fewer awaits than that.
    """
    for moment in Moment:
        number = 0
        while True:
            number += 1
            async with asyncio.TaskGroup() as group:
                task = group.create_task(_cancelled_at(work(), number, moment))
                await asyncio.wait((task,))
            yield number, moment
            if not task.cancelled():
                break


async def _cancelled_at(work: Coroutine[Any, Any, object], number: int, moment: Moment) -> None:
    await _Stepped(work, number, moment)


class _Stepped:
    def __init__(self, work: Coroutine[Any, Any, object], number: int, moment: Moment) -> None:
        self._work = work
        self._left = number
        self._moment = moment

    def __await__(self) -> Generator[Any, Any, object]:
        error: BaseException | None = None
        while True:
            try:
                awaited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as end:
                return end.value
            self._left -= 1
            if self._left == 0:
                self._cancel(awaited)
            try:
                yield awaited
                error = None
            except BaseException as thrown:
                error = thrown

    def _cancel(self, awaited: "asyncio.Future[Any] | None") -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._moment is Moment.BEFORE or awaited is None:
            task.cancel()
        else:
            # Before the task's own callback, so that it is cancelled when it is woken.
            awaited.add_done_callback(lambda _: task.cancel())
