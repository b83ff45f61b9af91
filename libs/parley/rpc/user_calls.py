"""Admission of calls to a server: running calls are counted, in all and by user, and bounded."""

import asyncio

from parley.identity import Caller
from parley.rpc.problem import Problem, Refusal

TOO_MANY_RUNNING_CALLS = "TOO_MANY_RUNNING_CALLS"


class UserCalls:
    """Counts the running calls of one server by user, streams included.

    Calls of other services are not counted: the gateway has bounds of its own for each user.

    Args:
        calls_max: The most that may run for one user.
    """

    __slots__ = ("_calls_max", "_running")

    def __init__(self, calls_max: int) -> None:
        self._calls_max = calls_max
        self._running: dict[str, int] = {}

    def begin(self, caller: Caller) -> str | None:
        """Count a call; return what to give to `end`, or None if the call is not counted.

        Raises:
            Refusal: As many calls of the user are running as may.
        """
        if caller.token_id is None:
            return None
        holder = caller.token_id if caller.user is None else caller.user.id
        running = self._running.get(holder, 0)
        if running >= self._calls_max:
            raise Refusal(
                Problem.of(
                    TOO_MANY_RUNNING_CALLS,
                    f"{running} calls of yours are running, and no more may; end some of them",
                    {"calls_max": str(self._calls_max)},
                    retry_after_s=1.0,
                )
            )
        self._running[holder] = running + 1
        return holder

    def end(self, holder: str) -> None:
        """Count the end of a call."""
        left = self._running[holder] - 1
        if left:
            self._running[holder] = left
        else:
            del self._running[holder]


class Gate:
    """Counts the running calls and can be closed for new ones.

    Attributes:
        running: Calls being served now.
        is_draining: Whether new calls are refused.
    """

    __slots__ = ("_is_empty", "is_draining", "running")

    def __init__(self) -> None:
        self.running = 0
        self.is_draining = False
        self._is_empty = asyncio.Event()

    def leave(self) -> None:
        """Record that a call has ended."""
        self.running -= 1
        if self.is_draining and self.running == 0:
            self._is_empty.set()

    def close(self) -> None:
        """Refuse calls from now on."""
        self.is_draining = True
        if self.running == 0:
            self._is_empty.set()

    async def wait_until_empty(self, limit_s: float) -> bool:
        """Wait at most `limit_s` for the running calls; return whether all ended."""
        try:
            async with asyncio.timeout(limit_s):
                await self._is_empty.wait()
        except TimeoutError:
            return False
        return True
