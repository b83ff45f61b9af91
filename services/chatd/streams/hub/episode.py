"""Encoded parts of the open episode, and parts that arrive before the state of their episode."""

from collections import deque
from collections.abc import Iterator

PARTS_BYTES_MAX = 1 << 20
EARLY_PARTS_MAX = 1024


class EpisodeLog:
    """Parts with consecutive numbers; of a very long episode only the newest are kept."""

    def __init__(self, key: tuple[int, int]) -> None:
        self.key = key
        self.last_seq = 0
        self._parts: deque[bytes] = deque()
        self._bytes = 0

    @property
    def first_seq(self) -> int:
        """The number of the oldest kept part; `last_seq + 1` if there is none."""
        return self.last_seq - len(self._parts) + 1

    def add(self, seq: int, body: bytes) -> bool:
        """Keep a part; return whether its number is the next one.

        A part after a gap drops all parts before it: readers are sent a truncation event.
        """
        assert seq > self.last_seq
        is_next = seq == self.last_seq + 1
        if not is_next:
            self._parts.clear()
            self._bytes = 0
        self.last_seq = seq
        self._parts.append(body)
        self._bytes += len(body)
        while self._bytes > PARTS_BYTES_MAX and len(self._parts) > 1:
            self._bytes -= len(self._parts.popleft())
        return is_next

    def behind(self, seq: int) -> Iterator[tuple[int, bytes]]:
        """Yield number and body of the parts after a number."""
        first = self.first_seq
        for place, body in enumerate(self._parts):
            if first + place > seq:
                yield first + place, body


class EarlyParts:
    """Parts of the newest episode whose state was not read yet; they wait for that state."""

    def __init__(self) -> None:
        self._episode = (0, 0)
        self._parts: list[tuple[int, bytes]] = []

    def add(self, episode: tuple[int, int], seq: int, body: bytes) -> bool:
        """Keep a part; return whether it is the first part received of its episode."""
        is_first = self._episode != episode
        if is_first:
            self._episode, self._parts = episode, []
        if len(self._parts) < EARLY_PARTS_MAX:
            self._parts.append((seq, body))
        return is_first

    def take(self, episode: tuple[int, int]) -> list[tuple[int, bytes]]:
        """Return the parts of an episode that is open now; those of older ones are dropped."""
        if self._episode > episode:
            return []
        parts = self._parts if self._episode == episode else []
        self._episode, self._parts = (0, 0), []
        return parts
