"""The send queue of one reader, bounded in bytes, and its close reason."""

from collections import deque
from collections.abc import Callable
from enum import Enum

from chatd.streams.rpc.position import Position
from parley.api.chat.v1 import stream_service_pb2 as api

WAITING_BYTES_MAX = 1 << 20
# More of a long history is read only while less than this is queued or unconfirmed.
UNCONFIRMED_BYTES_MAX = 256 * 1024


class Close(Enum):
    """Why a subscription ended."""

    RESYNC = api.CLOSE_REASON_RESYNC
    GOING_AWAY = api.CLOSE_REASON_GOING_AWAY
    NOT_FOUND = api.CLOSE_REASON_NOT_FOUND
    UNSUBSCRIBED = api.CLOSE_REASON_UNSUBSCRIBED
    INTERNAL = api.CLOSE_REASON_INTERNAL


class Subscription:
    """Events of one reader that are not sent yet; `wake` notifies the writer, which takes them.

    Attributes:
        position: The reader's position after the last queued event. Live parts do not change it:
            the position of live readers is that of their hub.
        closed: The close reason; None while it is open.
    """

    __slots__ = (
        "_confirm",
        "_events",
        "_wake",
        "closed",
        "is_ready",
        "position",
        "unconfirmed_bytes",
        "waiting_bytes",
    )

    def __init__(self, position: Position, wake: Callable[["Subscription"], None]) -> None:
        self.position = position
        self.closed: Close | None = None
        self.is_ready = False
        self.waiting_bytes = 0
        self.unconfirmed_bytes = 0
        self._events: deque[bytes] = deque()
        self._wake = wake
        self._confirm: Callable[[], None] | None = None

    @property
    def waiting(self) -> int:
        """How many events are queued."""
        return len(self._events)

    @property
    def next_bytes(self) -> int:
        """The size of the first queued event."""
        return len(self._events[0]) if self._events else 0

    def open(self) -> None:
        """Have the writer confirm that the subscription is open."""
        self._tell()

    def put(self, event: bytes) -> bool:
        """Queue an event; return False when the queue is full: the reader must then be dropped."""
        if self.closed is not None:
            return True
        if self.waiting_bytes + len(event) > WAITING_BYTES_MAX and self._events:
            return False
        self._events.append(event)
        self.waiting_bytes += len(event)
        if not self.is_ready:
            self._tell()
        return True

    def close(self, why: Close, *, drop: bool = False) -> int:
        """Close it, after its queued events or dropping them; return how many were dropped."""
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

    def next_events(self, bytes_max: int) -> list[bytes]:
        """Dequeue events of at most so many bytes, but always the first one."""
        taken: list[bytes] = []
        size = 0
        while self._events and (not taken or size + len(self._events[0]) <= bytes_max):
            event = self._events.popleft()
            taken.append(event)
            size += len(event)
        self.waiting_bytes -= size
        self.unconfirmed_bytes += size
        self.is_ready = bool(self._events)
        if self.has_room:
            self._room_made()
        return taken

    def confirm(self, size: int) -> None:
        """Handle the confirmation that so many bytes have reached the reader."""
        self.unconfirmed_bytes = max(0, self.unconfirmed_bytes - size)
        if self.has_room:
            self._room_made()

    @property
    def has_room(self) -> bool:
        """Whether more of a long history may be queued."""
        return self.waiting_bytes + self.unconfirmed_bytes < UNCONFIRMED_BYTES_MAX

    def when_room(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once there is space in the queue, or the subscription is closed."""
        self._confirm = tell

    def _room_made(self) -> None:
        tell, self._confirm = self._confirm, None
        if tell is not None:
            tell()

    def _tell(self) -> None:
        self.is_ready = True
        self._wake(self)
