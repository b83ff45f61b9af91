"""The running calls of users of service tokens: counted by user, and bounded."""

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
