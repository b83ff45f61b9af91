"""How long a whole stop may take, shared by all who have a part in it."""

from collections.abc import Callable

STOP_S_MAX = 9.0
#: What the database and the orphans need at least, whatever the services before them took.
DATABASE_S_MIN = 2.5
ORPHANS_S_MIN = 1.0


class StopDeadline:
    """One deadline, which runs from the moment somebody first asks about it."""

    def __init__(self, monotonic: Callable[[], float], *, whole_s: float = STOP_S_MAX) -> None:
        self._monotonic = monotonic
        self._whole_s = whole_s
        self._ends_at: float | None = None

    def for_services_s(self) -> float:
        """Return what is left for the services."""
        return max(0.0, self._left_s() - DATABASE_S_MIN - ORPHANS_S_MIN)

    def for_database_s(self) -> float:
        """Return what is left for the database, once the services have ended."""
        return max(0.0, self._left_s() - ORPHANS_S_MIN)

    def for_orphans_s(self) -> float:
        """Return what is left for everything else."""
        return max(0.0, self._left_s())

    def begin(self) -> None:
        """Let the time run, unless it does already."""
        if self._ends_at is None:
            self._ends_at = self._monotonic() + self._whole_s

    def _left_s(self) -> float:
        self.begin()
        assert self._ends_at is not None
        return self._ends_at - self._monotonic()
