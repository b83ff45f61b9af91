"""Cancels long work of a request when the client disconnects or this process stops."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from starlette.requests import Request

from gateway.http.problems.errors import HttpProblem
from parley.tasks import Overtaken, run_unless

DISCONNECTED: Final = "http.disconnect"

T = TypeVar("T")


async def cancel_on_disconnect(
    request: Request, draining: asyncio.Event, work: Coroutine[Any, Any, T]
) -> T:
    """Return the result of `work`; cancel it when the client disconnects or this process stops.

    Raises:
        HttpProblem: The client disconnected, so that there is no response (499), or this process
            stops and the client has to ask another one (503).
    """
    try:
        return await run_unless(work, _gone(request), draining.wait())
    except Overtaken:
        raise (_stopping() if draining.is_set() else _nobody()) from None


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != DISCONNECTED:
        pass


def _stopping() -> HttpProblem:
    return HttpProblem.of("DRAINING", "This process stops; ask again.", retry_after_s=1.0)


def _nobody() -> HttpProblem:
    return HttpProblem.of("CLIENT_CLOSED_REQUEST", "The client went away.")
