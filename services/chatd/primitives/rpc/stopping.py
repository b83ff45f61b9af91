"""Calls that only wait: cancelled when this process stops, so that the client asks another one."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from parley.rpc import Problem, Refusal
from parley.tasks import Overtaken, run_unless

DRAINING: Final = Problem.of(
    "DRAINING",
    "this process is stopping; call another replica",
    retry_after_s=1.0,
)

T = TypeVar("T")


async def unless_stopping(stopping: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`; cancel it when the process stops first.

    Raises:
        Refusal: The process stops.
    """
    try:
        return await run_unless(work, stopping.wait())
    except Overtaken:
        raise Refusal(DRAINING) from None
