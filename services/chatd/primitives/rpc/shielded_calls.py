"""Work that a call starts and that continues after the call is cancelled."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from parley.tasks import Shielding

T = TypeVar("T")


class ShieldedCalls:
    """Runs work to its end in tasks that the process owns.

    A command that claimed a chat must also start its runner; otherwise the chat has no runner until
    a later check finds it.
    """

    def __init__(self, tasks: Shielding) -> None:
        self._tasks = tasks

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of `work`; cancelling this call does not cancel `work`."""
        return await self._tasks.complete(work())
