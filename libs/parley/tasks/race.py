"""Several coroutines of which the first to end decides; the others are cancelled."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from parley.clock import Clock
from parley.tasks.completion import captured, result_of

T = TypeVar("T")

Start = Callable[[Coroutine[Any, Any, T]], asyncio.Task[T]]


class Overtaken(Exception):
    """Work was cancelled, because something else ended first."""


@asynccontextmanager
async def owned_tasks() -> AsyncIterator[Start[Any]]:
    """Start tasks that are cancelled at exit; an error is raised as itself, not in a group.

    A group would wrap the body's exception, and a refusal would look like a crash.
    """
    tasks: list[asyncio.Task[Any]] = []
    failure: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:

            def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
                task = group.create_task(work)
                tasks.append(task)
                return task

            try:
                yield start
            except BaseException as error:
                failure = error
            finally:
                for task in tasks:
                    task.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors.exceptions[0].__cause__
    if failure is not None:
        raise failure


async def first_of(
    work: Coroutine[Any, Any, T], *others: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """Run all coroutines until one is done; return its result, the leftmost's if several are.

    The others start only if the first is not done at once, which is often the case.
    """
    async with owned_tasks() as start:
        tasks = [start(work)]
        await asyncio.wait(tasks, timeout=0)
        if not tasks[0].done():
            tasks += [start(other()) for other in others]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        done = next(task for task in tasks if task.done())
    result: T = done.result()
    return result


async def run_unless(work: Coroutine[Any, Any, T], *ends: Coroutine[Any, Any, object]) -> T:
    """Return the result of `work` or raise its error; cancel it when one of `ends` returns.

    Raises:
        Overtaken: One of `ends` returned first.
    """
    async with asyncio.TaskGroup() as group:
        working = group.create_task(captured(work))
        tasks = (working, *(group.create_task(end) for end in ends))
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
    if working.cancelled():
        raise Overtaken
    return result_of(working.result())


async def is_set_within(event: asyncio.Event, limit_s: float, clock: Clock) -> bool:
    """Wait for `event` for at most `limit_s` of `clock`; return whether it is set."""
    with suppress(Overtaken):
        await run_unless(event.wait(), clock.sleep(limit_s))
    return event.is_set()
