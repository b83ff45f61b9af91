"""The parts of one open episode, encoded, as far as a hub has them."""

from collections import deque
from collections.abc import Iterator

PARTS_BYTES_MAX = 1 << 20


class EpisodeLog:
    """Parts with consecutive numbers; of a very long episode only the newest are kept."""

    def __init__(self, key: tuple[int, int]) -> None:
        self.key = key
        self.last_seq = 0
        self._parts: deque[bytes] = deque()
        self._bytes = 0

    @property
    def first_seq(self) -> int:
        """The number of the oldest part that is kept; one more than the last if there is none."""
        return self.last_seq - len(self._parts) + 1

    def add(self, seq: int, body: bytes) -> bool:
        """Keep a part; return whether it is the very next one.

        One that comes behind a gap forgets what was before: a reader is told of the gap.
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
        """Yield number and body of the parts behind a number."""
        first = self.first_seq
        for place, body in enumerate(self._parts):
            if first + place > seq:
                yield first + place, body
