"""The owner of background tasks: a task group in which no failure of one ends the others."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from parley.tasks.completion import complete, name_of
from parley.tasks.supervision import Supervision

T = TypeVar("T")

#: The prefix of the names of tasks that run as long as their owner, so that they can be listed.
LOOP_PREFIX: Final = "loop:"


class Starter(Protocol):
    """An owner of tasks: `BackgroundTasks`, or a plain group if a failure must be raised."""

    def create_task(
        self,
        coro: Coroutine[Any, Any, None],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[None]:
        """Start a task that ends before its owner does."""
        ...


class BackgroundTasks:
    """Owns tasks that no caller awaits, from entering its context to leaving it.

    At the end loops are cancelled and all other tasks are awaited.
    """

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision
        self._group = asyncio.TaskGroup()
        self._loops: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Cancel the loops and await the rest; an error is raised as it is, not in a group."""
        for loop in self._loops:
            loop.cancel()
        try:
            await self._group.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            if len(group.exceptions) > 1:
                raise
            failure = group.exceptions[0]
            raise failure from failure.__cause__

    def keep(self, name: str, run: Callable[[], Awaitable[Any]]) -> asyncio.Task[None]:
        """Run a loop until the context ends or it returns, and run it again after each failure.

        Args:
            name: Its name in the log and in the metric; unique among the loops of a process.
            run: Starts it.
        """
        work = self._supervision.keep(name, run)
        loop = self._group.create_task(work, name=f"{LOOP_PREFIX}{name}")
        self._loops.append(loop)
        return loop

    def create_task(
        self,
        coro: Coroutine[Any, Any, None],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[None]:
        """Start work that ends by itself; a failure is logged and counted."""
        known_as = name or name_of(coro)
        work = self._supervision.once(known_as, coro)
        task = self._group.create_task(work, name=known_as, context=context)
        # A task that is cancelled before its first step never awaits the coroutine.
        task.add_done_callback(lambda _: coro.close())
        return task

    async def complete(self, work: Coroutine[Any, Any, T], context: Context | None = None) -> T:
        """Return the result of work, or raise its error; cancelling this lets the work go on."""
        return await complete(self._group, work, context)
