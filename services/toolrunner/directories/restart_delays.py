"""How long commands wait in a workspace that was ended because it had too many processes.

Theory: a workspace at its limit of processes slows down all others until it is ended, and to end it
takes time as well. Its user could have that without pause by starting the same command again. So
the next command waits, twice as long after each time within a minute. The times are those of all
workspaces of the user, since a new one costs its user little; but only the workspaces that were
ended have to wait.
"""

from typing import Final, NamedTuple

from parley.cache import BoundedCache
from toolrunner.primitives.domain import WorkspaceId

WINDOW_S: Final = 60.0
FIRST_S: Final = 1.0
#: Below the 30 s after which callers give a start up.
MOST_S: Final = 16.0
KNOWN_MAX: Final = 1000


class End(NamedTuple):
    """When a workspace was ended, and how long its next command waits from then on."""

    at_s: float
    delay_s: float


class RestartDelays:
    """The workspaces that were ended, and when those of each user were within a minute."""

    def __init__(self) -> None:
        self._ends: BoundedCache[WorkspaceId, End] = BoundedCache(KNOWN_MAX)
        self._of_users: BoundedCache[str, tuple[float, ...]] = BoundedCache(KNOWN_MAX)

    def note(self, workspace_id: WorkspaceId, user_id: str, now_s: float) -> None:
        """Record that a workspace is ended; without a known user it counts for itself."""
        user = user_id or workspace_id
        before = self._of_users.get(user) or ()
        times_s = (*(each for each in before if now_s - each < WINDOW_S), now_s)
        self._of_users.put(user, times_s)
        delay_s = min(MOST_S, FIRST_S * 2 ** (len(times_s) - 1))
        self._ends.put(workspace_id, End(now_s, delay_s))

    def was_ended(self, workspace_id: WorkspaceId, now_s: float) -> bool:
        """Return whether a workspace was ended within a minute."""
        end = self._ends.get(workspace_id)
        return end is not None and now_s - end.at_s < WINDOW_S

    def left_s(self, workspace_id: WorkspaceId, now_s: float) -> float:
        """Return how long a command still waits that starts now; 0 for not at all."""
        end = self._ends.get(workspace_id)
        return 0.0 if end is None else max(0.0, end.at_s + end.delay_s - now_s)
