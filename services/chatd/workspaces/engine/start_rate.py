"""Bounds how often one user starts workspaces that are stopped.

A start is prepared by a driver and a node like a new workspace, but leaves no row behind, so that
it is counted in the memory of each process.
"""

from datetime import datetime
from typing import Final

from chatd.primitives.domain.ids import OwnerId
from chatd.workspaces.domain.creation_rate import wait_s
from chatd.workspaces.domain.errors import TooManyNewWorkspaces
from parley.cache import BoundedCache
from parley.clock import Clock

OWNERS_MAX: Final = 10_000


class StartRate:
    """Counts the starts of each user.

    Args:
        clock: The clock.
        starts_max: How many starts one user may have within a minute; 0 for no limit.
    """

    def __init__(self, clock: Clock, starts_max: int) -> None:
        self._clock = clock
        self._starts_max = starts_max
        #: The last starts of each user, the newest first.
        self._started_at: BoundedCache[OwnerId, tuple[datetime, ...]] = BoundedCache(OWNERS_MAX)

    def count(self, owner_id: OwnerId) -> None:
        """Count a start.

        Raises:
            TooManyNewWorkspaces: There were too many within a minute; this one is not counted.
        """
        before, now = self._started_at.get(owner_id) or (), self._clock.now()
        if after_s := wait_s(before, self._starts_max, now):
            raise TooManyNewWorkspaces(self._starts_max, after_s)
        if self._starts_max:
            self._started_at.put(owner_id, (now, *before[: self._starts_max - 1]))
