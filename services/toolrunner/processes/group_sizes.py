"""How many processes each process group below the spawner has.

Theory: counting reads every process of all workspaces, and each read takes a lock that forks take.
While a workspace forks as fast as it can, a count takes seconds, in which nothing else of the
service goes on, not even what ends that workspace. So a count is used again for as long as counting
would take more than a small part of the time, however often it is asked for.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from parley.clock import Clock

#: Counting takes at most 1/SHARE of the time.
SHARE: Final = 20


class GroupSizes:
    """Counts processes by group, seldom where that takes long.

    Args:
        count: Counts them.
        clock: The clock by which a count takes time and becomes too old.
    """

    def __init__(self, count: Callable[[], Counter[int]], clock: Clock) -> None:
        self._count = count
        self._clock = clock
        self._counted: Counter[int] = Counter()
        self._until_s = 0.0

    def __call__(self) -> Counter[int]:
        """Return how many processes each group has, or had at the last count."""
        began_s = self._clock.monotonic()
        if began_s >= self._until_s:
            self._counted = self._count()
            ended_s = self._clock.monotonic()
            self._until_s = ended_s + (SHARE - 1) * (ended_s - began_s)
        return self._counted
