"""Calls that only wait: cancelled when this process stops, so that the client asks another one."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from parley.rpc import Problem, Refusal

DRAINING: Final = Problem.of(
    "DRAINING",
    "this process is stopping; call another replica",
    retry_after_s=1.0,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error returned from its task without cancelling the other tasks of the group."""

    error: Exception


async def unless_stopping(stopping: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`; cancel it when the process stops first.

    Raises:
        Refusal: The process stops.
    """
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(_captured(work))
        ending = tasks.create_task(stopping.wait())
        await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        ending.cancel()
    if working.cancelled():
        raise Refusal(DRAINING)
    match working.result():
        case _Done(value):
            return value
        case _Failed(error):
            raise error


async def _captured(work: Coroutine[Any, Any, T]) -> _Done[T] | _Failed:
    try:
        return _Done(await work)
    except Exception as error:
        return _Failed(error)
