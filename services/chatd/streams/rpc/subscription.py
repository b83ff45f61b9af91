"""What waits for one reader, bounded in bytes, and how it ends."""

from collections import deque
from collections.abc import Callable
from enum import Enum

from chatd.streams.rpc.position import Position
from parley.api.chat.v1 import stream_service_pb2 as api

WAITING_BYTES_MAX = 1 << 20
# A long history is read on only while less than this is on its way to the reader.
UNCONFIRMED_BYTES_MAX = 256 * 1024


class Close(Enum):
    """Why a subscription ended."""

    RESYNC = api.CLOSE_REASON_RESYNC
    GOING_AWAY = api.CLOSE_REASON_GOING_AWAY
    NOT_FOUND = api.CLOSE_REASON_NOT_FOUND
    UNSUBSCRIBED = api.CLOSE_REASON_UNSUBSCRIBED
    INTERNAL = api.CLOSE_REASON_INTERNAL


class Subscription:
    """One reader's events that are not sent yet; the writer takes them, `wake` tells it to.

    Attributes:
        position: Where the reader stands after the last event that was put in line. Live parts move
            it no more: all who are live stand where their hub stands.
        closed: Why it ended; None while it is open.
    """

    __slots__ = (
        "_confirm",
        "_events",
        "_wake",
        "closed",
        "has_news",
        "position",
        "unconfirmed_bytes",
        "waiting_bytes",
    )

    def __init__(self, position: Position, wake: Callable[["Subscription"], None]) -> None:
        self.position = position
        self.closed: Close | None = None
        self.has_news = False
        self.waiting_bytes = 0
        self.unconfirmed_bytes = 0
        self._events: deque[bytes] = deque()
        self._wake = wake
        self._confirm: Callable[[], None] | None = None

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._events)

    @property
    def next_bytes(self) -> int:
        """The size of the first event in line."""
        return len(self._events[0]) if self._events else 0

    def open(self) -> None:
        """Let the writer say that the subscription is open."""
        self._tell()

    def put(self, event: bytes) -> bool:
        """Put an event in line; return False when there is no room, and the reader is lost."""
        if self.closed is not None:
            return True
        if self.waiting_bytes + len(event) > WAITING_BYTES_MAX and self._events:
            return False
        self._events.append(event)
        self.waiting_bytes += len(event)
        if not self.has_news:
            self._tell()
        return True

    def close(self, why: Close, *, drop: bool = False) -> int:
        """End it, after what waits or instead of it; return how many events were dropped."""
        if self.closed is not None:
            return 0
        self.closed = why
        dropped = len(self._events) if drop else 0
        if drop:
            self._events.clear()
            self.waiting_bytes = 0
        self._room_made()
        self._tell()
        return dropped

    def take(self, bytes_max: int) -> list[bytes]:
        """Take events of about so many bytes, the first one however large it is."""
        taken: list[bytes] = []
        size = 0
        while self._events and (not taken or size + len(self._events[0]) <= bytes_max):
            event = self._events.popleft()
            taken.append(event)
            size += len(event)
        self.waiting_bytes -= size
        self.unconfirmed_bytes += size
        self.has_news = bool(self._events)
        if self.has_room:
            self._room_made()
        return taken

    def confirm(self, size: int) -> None:
        """Learn that so many bytes have reached the reader."""
        self.unconfirmed_bytes = max(0, self.unconfirmed_bytes - size)
        if self.has_room:
            self._room_made()

    @property
    def has_room(self) -> bool:
        """Whether more of a long history may be put in line."""
        return self.waiting_bytes + self.unconfirmed_bytes < UNCONFIRMED_BYTES_MAX

    def when_room(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once there is room, or the subscription has ended."""
        self._confirm = tell

    def _room_made(self) -> None:
        tell, self._confirm = self._confirm, None
        if tell is not None:
            tell()

    def _tell(self) -> None:
        self.has_news = True
        self._wake(self)
