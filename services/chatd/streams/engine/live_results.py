"""Live results: the output of running calls, joined and bounded before it is published.

The calls of an episode publish at most one delta each per flush, and together on average at most
2 KiB per flush. Output that is faster is not queued: it is replaced by a reset with its end. After
many published bytes every call publishes its whole live result again, so that the kept parts of the
episode contain it for late readers, however much another call writes.
"""

from msgspec.structs import replace

from chatd.content.domain.parts import ToolResultDelta
from chatd.streams.engine.coalescing import joined_deltas, size_of

FLUSH_BYTES = 2048
#: How much new output of all calls together one flush publishes; of more, it publishes the end.
UNSENT_BYTES_MAX = 32 * 1024
#: How much of the ends of all outputs together is published again for late readers.
RESULTS_BYTES_MAX = 64 * 1024
#: After how many published bytes that is done.
REPEAT_BYTES = 256 * 1024


class LiveResult:
    """The live result of one running call.

    Attributes:
        part_index: The index of its parts.
        unsent: What is not published yet.
    """

    def __init__(self, part_index: int, first: ToolResultDelta) -> None:
        self.part_index = part_index
        self.unsent: ToolResultDelta | None = None
        self._whole = ToolResultDelta(
            first.tool_call_id, first.tool_name, first.mcp_server_id, is_reset=True
        )
        self.add(first)

    def add(self, delta: ToolResultDelta) -> None:
        """Append a delta."""
        self._whole = _ending(joined_deltas(self._whole, delta), RESULTS_BYTES_MAX)
        self.unsent = delta if self.unsent is None else joined_deltas(self.unsent, delta)
        if size_of(self.unsent) > UNSENT_BYTES_MAX:
            self.unsent = _ending(self._whole, UNSENT_BYTES_MAX)

    def take(self, bytes_max: int) -> ToolResultDelta | None:
        """Return what is not published yet; the end of the whole text if that is too large."""
        delta, self.unsent = self.unsent, None
        if delta is None or size_of(delta) <= bytes_max:
            return delta
        return _ending(self._whole, bytes_max)

    def take_whole(self, bytes_max: int) -> ToolResultDelta:
        """Return the end of the whole text, published or not."""
        self.unsent = None
        return _ending(self._whole, bytes_max)


class LiveResults:
    """The live results of one episode."""

    def __init__(self) -> None:
        self._running: dict[str, LiveResult] = {}
        self._ended: set[str] = set()
        self._is_closed = False
        self._pause = 0  # Flushes until the next deltas.
        self._bytes_since_repeat = 0

    @property
    def has_unsent(self) -> bool:
        """Whether another flush is needed."""
        return any(result.unsent is not None for result in self._running.values())

    def add(self, part_index: int, delta: ToolResultDelta) -> bool:
        """Append a delta; return False if its call is shown no more."""
        call = delta.tool_call_id
        if self._is_closed or call in self._ended:
            return False
        running = self._running.get(call)
        if running is None:
            self._running[call] = LiveResult(part_index, delta)
        else:
            running.add(delta)
        return True

    def end(self, tool_call_id: str) -> None:
        """Drop the live result of a call that has its result."""
        self._running.pop(tool_call_id, None)
        self._ended.add(tool_call_id)

    def close(self) -> None:
        """Publish nothing more: the calls are being cancelled."""
        self._is_closed = True
        self._running.clear()

    def due(self) -> list[tuple[int, ToolResultDelta]]:
        """Return what is to be published at this flush, with the index of its part."""
        if self._pause:
            self._pause -= 1
            return []
        if not self.has_unsent:
            return []
        deltas = self._deltas()
        published_bytes = sum(size_of(delta) for _, delta in deltas)
        self._pause = published_bytes // FLUSH_BYTES
        self._bytes_since_repeat += published_bytes
        return deltas

    def _deltas(self) -> list[tuple[int, ToolResultDelta]]:
        results = list(self._running.values())
        if self._bytes_since_repeat > REPEAT_BYTES:
            self._bytes_since_repeat = 0
            share = RESULTS_BYTES_MAX // len(results)
            return [(result.part_index, result.take_whole(share)) for result in results]
        share = UNSENT_BYTES_MAX // len(results)
        taken = [(result.part_index, result.take(share)) for result in results]
        return [(part_index, delta) for part_index, delta in taken if delta is not None]


def _ending(delta: ToolResultDelta, bytes_max: int) -> ToolResultDelta:
    """Return the delta with the end of its text."""
    text = delta.text
    if len(text) * 4 <= bytes_max:
        return delta
    # A character has at least one byte; one that is cut is dropped.
    data = text[-bytes_max:].encode("utf-8", "surrogatepass")
    if len(text) <= bytes_max and len(data) <= bytes_max:
        return delta
    return replace(delta, text=data[-bytes_max:].decode("utf-8", "ignore"))
