"""Work that is completed even if the caller has disconnected."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from parley.rpc import detached
from parley.tasks import Shielding

T = TypeVar("T")


class Effects:
    """Runs effects in the tasks of their owner, outside of the calls that request them.

    A journal entry whose effect was cancelled halfway could never be completed.
    """

    def __init__(self, tasks: Shielding) -> None:
        self._tasks = tasks

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns, or raise what it raises."""
        return await self._tasks.complete(work, context=detached())
