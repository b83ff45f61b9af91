"""A cache in memory: bounded, with optional expiry."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from parley.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Entry(NamedTuple, Generic[V]):
    value: V
    size: int
    expires_s: float


class BoundedCache(Generic[K, V]):
    """Values by key; the least recently used are evicted. None is never cached.

    Args:
        entries_max: The maximum number of entries; None if only their size is bounded.
        size_max: The maximum sum of the sizes of the values.
        size_of: Returns the size of a value when it is put.
        clock: The clock of `ttl_of`.
        ttl_of: Returns for how many seconds a value is valid; without it values do not expire.
    """

    __slots__ = (
        "_clock",
        "_entries",
        "_entries_max",
        "_forgotten",
        "_size",
        "_size_max",
        "_size_of",
        "_ttl_of",
    )

    def __init__(
        self,
        entries_max: int | None = None,
        *,
        size_max: int = 0,
        size_of: Callable[[V], int] = lambda _: 0,
        clock: Clock | None = None,
        ttl_of: Callable[[V], float] = lambda _: float("inf"),
    ) -> None:
        self._entries_max = float("inf") if entries_max is None else entries_max
        self._size_max = size_max
        self._size_of = size_of
        self._clock = clock
        self._ttl_of = ttl_of
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._size = 0
        self._forgotten = 0

    def get(self, key: K) -> V | None:
        """Return the value, None if it is absent or expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._clock is not None and self._clock.monotonic() >= entry.expires_s:
            self.pop(key)
            return None
        self._entries.move_to_end(key)
        return entry.value

    async def get_or_read(self, key: K, read: Callable[[], Awaitable[V]]) -> V:
        """Return the value, read if it is not cached; it expires by the time of the request.

        It is not cached if anything was forgotten during the read: it may be older than that.
        """
        known = self.get(key)
        if known is not None:
            return known
        forgotten, asked_s = self._forgotten, self._now_s()
        value = await read()
        if forgotten == self._forgotten and value is not None:
            self._put(key, value, asked_s)
        return value

    def put(self, key: K, value: V) -> None:
        """Add or replace a value."""
        self._put(key, value, self._now_s())

    def pop(self, key: K) -> V | None:
        """Remove and return the value, expired or not."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._size -= entry.size
        return entry.value

    def forget(self, key: K) -> None:
        """Remove a value that changed; results of reads in progress are not cached either."""
        self._forgotten += 1
        self.pop(key)

    def clear(self) -> None:
        """Remove all values; results of reads in progress are not cached either."""
        self._forgotten += 1
        self._entries.clear()
        self._size = 0

    def items(self) -> Iterator[tuple[K, V]]:
        """Iterate over the entries, expired or not."""
        return ((key, entry.value) for key, entry in self._entries.items())

    def _put(self, key: K, value: V, from_s: float) -> None:
        self.pop(key)
        entry = _Entry(value, self._size_of(value), from_s + self._ttl_of(value))
        self._entries[key] = entry
        self._size += entry.size
        while len(self._entries) > self._entries_max or self._size > self._size_max:
            _, evicted = self._entries.popitem(last=False)
            self._size -= evicted.size

    def _now_s(self) -> float:
        return 0.0 if self._clock is None else self._clock.monotonic()
