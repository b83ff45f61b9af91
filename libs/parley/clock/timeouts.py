"""Iteration with a timeout per item, measured by a `Clock`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from parley.clock.port import Clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Item(Generic[T]):
    value: T


async def patient(
    items: AsyncIterator[T], *, silence_s: float, clock: Clock
) -> AsyncGenerator[T, None]:
    """Yield the items as they arrive.

    Raises:
        TimeoutError: No item arrived for `silence_s` of the clock.
    """
    while True:
        match await _within(items, silence_s, clock):
            case _Item(value):
                yield value
            case StopAsyncIteration():
                return
            case Exception() as error:
                raise error
            case None:
                raise TimeoutError


async def _within(
    items: AsyncIterator[T], limit_s: float, clock: Clock
) -> _Item[T] | Exception | None:
    async with asyncio.TaskGroup() as tasks:
        coming = tasks.create_task(_captured(items))
        waiting = tasks.create_task(clock.sleep(limit_s))
        await asyncio.wait((coming, waiting), return_when=asyncio.FIRST_COMPLETED)
        outcome = coming.result() if coming.done() else None
        coming.cancel()
        waiting.cancel()
    return outcome


async def _captured(items: AsyncIterator[T]) -> _Item[T] | Exception:
    """Return the next item or the error: a task group would wrap an error that is raised."""
    try:
        return _Item(await anext(items))
    except Exception as error:
        return error
