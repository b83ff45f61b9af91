"""Waiting, but no longer than a clock allows or somebody is there to be answered."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from starlette.requests import Request

from gateway.errors import HttpRefusal
from parley.clock import Clock

DISCONNECTED: Final = "http.disconnect"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


async def is_set_within(event: asyncio.Event, limit_s: float, clock: Clock) -> bool:
    """Wait for `event` for at most `limit_s` of `clock`; return whether it is set."""
    if event.is_set():
        return True
    async with asyncio.TaskGroup() as tasks:
        racers = (
            tasks.create_task(event.wait()),
            tasks.create_task(clock.sleep(limit_s)),
        )
        await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
        for racer in racers:
            racer.cancel()
    return event.is_set()


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns, and cancel it when the client goes away first.

    Raises:
        HttpRefusal: It did, so that nobody is answered (499).
    """
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(_captured(work))
        leaving = tasks.create_task(_gone(request))
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        working.cancel()
    if working.cancelled():
        raise HttpRefusal(499, "CLIENT_CLOSED_REQUEST", "The client went away.")
    match working.result():
        case _Done(value):
            return value
        case _Failed(error):
            raise error


async def _captured(work: Coroutine[Any, Any, T]) -> _Done[T] | _Failed:
    """Carry an error out of its task without ending the others of the group."""
    try:
        return _Done(await work)
    except Exception as error:
        return _Failed(error)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != DISCONNECTED:
        pass
