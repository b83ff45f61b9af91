"""The deadline of a whole stop, shared by all its steps."""

from collections.abc import Callable

STOP_S_MAX = 9.0
#: The minimum for the database and the orphans, however long the services took.
DATABASE_S_MIN = 2.5
ORPHANS_S_MIN = 1.0


class StopDeadline:
    """One deadline, which begins with the first call of a method."""

    def __init__(self, monotonic: Callable[[], float], *, whole_s: float = STOP_S_MAX) -> None:
        self._monotonic = monotonic
        self._whole_s = whole_s
        self._ends_at: float | None = None

    def for_services_s(self) -> float:
        """Return the seconds left for the services."""
        return max(0.0, self._left_s() - DATABASE_S_MIN - ORPHANS_S_MIN)

    def for_database_s(self) -> float:
        """Return the seconds left for the database, once the services have ended."""
        return max(0.0, self._left_s() - ORPHANS_S_MIN)

    def for_orphans_s(self) -> float:
        """Return the seconds left for everything else."""
        return max(0.0, self._left_s())

    def begin(self) -> None:
        """Start the deadline, unless it has started already."""
        if self._ends_at is None:
            self._ends_at = self._monotonic() + self._whole_s

    def _left_s(self) -> float:
        self.begin()
        assert self._ends_at is not None
        return self._ends_at - self._monotonic()
