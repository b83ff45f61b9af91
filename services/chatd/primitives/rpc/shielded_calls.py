"""Work that a call begins and that goes on when the call is gone."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from parley.tasks import Shielding

T = TypeVar("T")


class ShieldedCalls:
    """Runs work to its end in tasks that the process owns.

    A command that claimed a chat must also start it, or the chat would wait for a runner until
    somebody notices.
    """

    def __init__(self, tasks: Shielding) -> None:
        self._tasks = tasks

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what `work` returns; cancelling this leaves it alone."""
        return await self._tasks.complete(work())
