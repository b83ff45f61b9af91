"""One chat's stream, kept open across connections, which the client may close on purpose."""

import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Callable
from dataclasses import dataclass

from parley.clock import Clock
from parley.testing.scaletest.connections import Dialer, EventReader, Take
from parley.testing.scaletest.frames import BROKEN, Frame, Head
from parley.testing.scaletest.plan import Target

OK = 200
PASSING = frozenset({0, 429, 502, 503, 504})
PAUSE_S = 0.2
PAUSE_S_MAX = 30.0
#: How long a server may be unreachable before a stream counts as lost.
AWAY_S_MAX = 60.0


@dataclass(frozen=True, slots=True)
class DisconnectSchedule:
    """When a client closes its own connection: at random, every so many events; 0 for never."""

    every: int
    rng: random.Random

    def next(self) -> int:
        """Return after how many events the next disconnect comes; 0 only if there is none."""
        return self.rng.randint(1, 2 * self.every - 1) if self.every else 0


def pause_s(refusal: Head) -> float:
    """Return the delay before the next request after a refusal or no answer."""
    asked_s = refusal.retry_after_s
    return PAUSE_S if asked_s is None else min(max(PAUSE_S, asked_s), PAUSE_S_MAX)


@dataclass(frozen=True, slots=True)
class StreamLost:
    """A stream that cannot be continued."""

    was_open: bool
    problem: str


class Follower:
    """Follows a chat from its beginning until it is closed or the stream is lost."""

    def __init__(
        self,
        target: Target,
        dialer: Dialer,
        chat_id: str,
        *,
        take: Take,
        lost: Callable[[StreamLost], None],
        cutting: DisconnectSchedule,
        clock: Clock,
    ) -> None:
        self.cuts = 0
        self.breaks = 0
        self.refused = 0
        self.received_bytes = 0
        self._target = target
        self._dialer = dialer
        self._path = f"/chats/{chat_id}/events"
        self._take_frame = take
        self._lost = lost
        self._cutting = cutting
        self._clock = clock
        self._cursor = ""
        self._until_cut = cutting.next()
        self._reader: EventReader | None = None
        self._is_cut = False
        self._was_open = False

    async def run(self) -> None:
        """Keep the stream open, until this is cancelled or it is lost.

        Temporary refusals are retried for as long as the turn may take; an unreachable server is
        retried for a shorter time.
        """
        heard_at = self._clock.monotonic()
        try:
            while True:
                head = await self._read()
                now = self._clock.monotonic()
                if head.status in PASSING and head.status:
                    self.refused += 1
                if head.status:
                    heard_at = now
                if head.status not in (OK, *PASSING):
                    problem = f"the stream was answered with {head.status}"
                    self._lost(StreamLost(self._was_open, problem))
                    return
                if now - heard_at > AWAY_S_MAX:
                    self._lost(StreamLost(self._was_open, "nobody answers"))
                    return
                if not self._is_cut:
                    await self._clock.sleep(pause_s(head))
        finally:
            if self._reader is not None:
                self._reader.cut()

    async def _read(self) -> Head:
        """Read one connection to its end; return the head of the answer."""
        self._is_cut, self._reader = False, None
        last = (f"Last-Event-ID: {self._cursor}",) if self._cursor else ()
        request = self._target.request(
            "GET", self._path, headers=("Accept: text/event-stream", *last)
        )

        def reader() -> EventReader:
            # Set before the first event, which may arrive before `connect` returns.
            self._reader = EventReader(request, self._take)
            return self._reader

        head = BROKEN
        try:
            made = await self._dialer.connect(reader)
            head = await made.opened
            self._was_open = self._was_open or head.status == OK
            await made.closed
        except OSError:
            return head
        finally:
            if self._reader is not None:
                self.received_bytes += self._reader.received_bytes
        self.breaks += head.status == OK and not self._is_cut
        return head

    def _take(self, frame: Frame) -> None:
        if frame.cursor is not None:
            self._cursor = frame.cursor
        self._take_frame(frame)
        if not self._until_cut:
            return
        self._until_cut -= 1
        if self._until_cut == 0:
            assert self._reader is not None
            self._is_cut = True
            self.cuts += 1
            self._until_cut = self._cutting.next()
            self._reader.cut()
