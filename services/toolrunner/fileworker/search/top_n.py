"""Selection of the first N items with bounded memory."""

from collections.abc import Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

SLACK: Final = 1000


class Ordered(Protocol):
    """A type with an order."""

    def __lt__(self, other: Any, /) -> bool:
        """Return whether it is less than the other."""
        ...


K = TypeVar("K", bound=Ordered)


class TopN(Generic[K]):
    """Keeps the least `count` of all items."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: list[K] = []
        self._last: K | None = None  # Items after it are dropped.

    def add(self, items: Iterable[K]) -> None:
        """Add some items."""
        last = self._last
        self._kept += [item for item in items if last is None or item < last]
        if len(self._kept) > self._count + SLACK:
            self._last = self.all()[-1]

    def all(self) -> list[K]:
        """Return the kept items, in order."""
        self._kept.sort()
        del self._kept[self._count :]
        return self._kept
