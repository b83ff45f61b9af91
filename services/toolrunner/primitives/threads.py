"""Threads for one kind of work, apart from those that all other work shares.

The threads of `asyncio.to_thread` are few, and work that takes minutes, such as copies of large
workspaces, may hold all of them. What has to go on meanwhile has threads of its own, and so has
what takes that long.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class OwnThreads:
    """Runs work in threads of its own; they begin with the first work.

    Args:
        name: The beginning of their names.
        threads_max: How many there are; more work waits.
    """

    def __init__(self, name: str, threads_max: int = 1) -> None:
        self._executor = ThreadPoolExecutor(threads_max, thread_name_prefix=name)

    def start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run work, or let it wait for a thread; return its future result."""
        return asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function and return its result, as `asyncio.to_thread` does."""
        return await self.start(partial(work, *args, **kwargs))
