"""Cancels long work of a request when the client disconnects or this process stops."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from starlette.requests import Request

from gateway.http.problems.errors import HttpProblem

DISCONNECTED: Final = "http.disconnect"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error returned from its task without cancelling the other tasks of the group."""

    error: Exception


async def cancel_on_disconnect(
    request: Request, draining: asyncio.Event, work: Coroutine[Any, Any, T]
) -> T:
    """Return the result of `work`; cancel it when the client disconnects or this process stops.

    Raises:
        HttpProblem: The client disconnected, so that there is no response (499), or this process
            stops and the client has to ask another one (503).
    """
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(_captured(work))
        leaving = (tasks.create_task(_gone(request)), tasks.create_task(draining.wait()))
        await asyncio.wait((working, *leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (working, *leaving):
            task.cancel()
    if working.cancelled():
        raise _stopping() if draining.is_set() else _nobody()
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


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != DISCONNECTED:
        pass


def _stopping() -> HttpProblem:
    return HttpProblem.of("DRAINING", "This process stops; ask again.", retry_after_s=1.0)


def _nobody() -> HttpProblem:
    return HttpProblem.of("CLIENT_CLOSED_REQUEST", "The client went away.")
