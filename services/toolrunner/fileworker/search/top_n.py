"""The first few of many: only those are kept that can still be among them."""

from collections.abc import Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

SLACK: Final = 1000


class Ordered(Protocol):
    """Whatever comes before or after its like."""

    def __lt__(self, other: Any, /) -> bool:
        """Tell whether it comes before the other."""
        ...


K = TypeVar("K", bound=Ordered)


class TopN(Generic[K]):
    """Keeps the least `count` of all that it is given."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: list[K] = []
        self._last: K | None = None  # What comes after it is of no interest.

    def add(self, items: Iterable[K]) -> None:
        """Take some more."""
        last = self._last
        self._kept += [item for item in items if last is None or item < last]
        if len(self._kept) > self._count + SLACK:
            self._last = self.all()[-1]

    def all(self) -> list[K]:
        """Return those that are kept, in order."""
        self._kept.sort()
        del self._kept[self._count :]
        return self._kept
