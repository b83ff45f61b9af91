"""Tasks that are bound to a code block: at its end none of them runs any more."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")

Start = Callable[[Coroutine[Any, Any, T]], asyncio.Task[T]]


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
        raise errors.exceptions[0] from None
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
