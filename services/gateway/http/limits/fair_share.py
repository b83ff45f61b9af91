"""A number of places that holders share, such that none of them can take all.

A holder gets another place while it holds fewer than a multiple of those that are left. With the
multiple 1 a single holder gets half of all places, two that want everything a third each, and so
on: some are always left for a holder that comes later, however greedy the others are.
"""


class FairShare:
    """Places and who holds them.

    Args:
        places: How many there are.
        each_max: The most that one holder may have.
        multiple: How many times what is left a holder may have.
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
        """Return how many places one holder may have at the moment."""
        return min(self._each_max, self._multiple * (self._places - self._taken))

    def take(self, holder: str) -> bool:
        """Give a holder one more place; return whether it may have it."""
        held = self._held.get(holder, 0)
        if held >= self.bound():
            return False
        self._held[holder] = held + 1
        self._taken += 1
        return True

    def release(self, holder: str) -> None:
        """Take a place back that a holder was given."""
        self._taken -= 1
        left = self._held[holder] - 1
        if left:
            self._held[holder] = left
        else:
            del self._held[holder]
