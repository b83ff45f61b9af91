"""A number of places that is shared fairly among holders.

A holder gets another place while it holds fewer than a multiple of the free places. With the
multiple 1 a single holder gets half of all places, two holders with unlimited demand a third each,
and so on: some places always remain for a later holder.
"""


class FairShare:
    """The places and their holders.

    Args:
        places: The number of places.
        each_max: The most that one holder may have.
        multiple: The multiple of the free places that a holder may have.
    """

    def __init__(self, places: int, *, each_max: int, multiple: int = 1) -> None:
        self._places = places
        self._each_max = each_max
        self._multiple = multiple
        self._taken = 0
        self._held: dict[str, int] = {}

    @property
    def is_full(self) -> bool:
        """Whether all places are taken."""
        return self._taken >= self._places

    def held(self, holder: str) -> int:
        """Return how many places a holder has."""
        return self._held.get(holder, 0)

    def bound(self) -> int:
        """Return how many places one holder may have now."""
        return min(self._each_max, self._multiple * (self._places - self._taken))

    def take(self, holder: str) -> bool:
        """Assign one more place to a holder; return whether that was possible."""
        held = self._held.get(holder, 0)
        if held >= self.bound():
            return False
        self._held[holder] = held + 1
        self._taken += 1
        return True

    def release(self, holder: str) -> None:
        """Release a place of a holder."""
        self._taken -= 1
        left = self._held[holder] - 1
        if left:
            self._held[holder] = left
        else:
            del self._held[holder]
