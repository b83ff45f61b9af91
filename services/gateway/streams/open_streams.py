"""All open streams of this process: one look each second keeps thousands alive and young."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn, Protocol

from opentelemetry.metrics import Meter, Observation

from parley.clock import Clock

TICK_S = 1.0
OPEN: Final = "gateway.streams.open"
OVERFLOWED: Final = "gateway.streams.overflowed"


class OpenStream(Protocol):
    """A stream, as far as time and the end of the process concern it."""

    def tick(self, now: float) -> None:
        """Beat after a silence, or end of old age."""
        ...

    def send_bye(self) -> None:
        """End, because the process does."""
        ...


class OpenStreams:
    """The streams of all clients; its owner runs `run`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streams: dict[OpenStream, None] = {}
        self._is_stopping = False
        self._overflowed = 0

    def __len__(self) -> int:
        return len(self._streams)

    @contextmanager
    def holding(self, stream: OpenStream) -> Iterator[None]:
        """Look after a stream while the context lasts."""
        self._streams[stream] = None
        if self._is_stopping:
            stream.send_bye()
        try:
            yield
        finally:
            del self._streams[stream]

    def overflowed(self) -> None:
        """Count a client that left too much unread and was told to begin anew."""
        self._overflowed += 1

    def measure(self, meter: Meter) -> None:
        """Show numbers that are read only when somebody looks."""
        meter.create_observable_gauge(
            OPEN,
            callbacks=[lambda _: [Observation(len(self))]],
            unit="{stream}",
            description="Streams of clients that are open.",
        )
        meter.create_observable_counter(
            OVERFLOWED,
            callbacks=[lambda _: [Observation(self._overflowed)]],
            unit="{stream}",
            description="Streams whose clients left too much unread and were told to begin anew.",
        )

    async def run(self) -> NoReturn:
        """Look at every stream, every second."""
        while True:
            await self._clock.sleep(TICK_S)
            now = self._clock.monotonic()
            for stream in list(self._streams):
                stream.tick(now)

    def stop(self) -> None:
        """Say bye to everybody, and to whoever still comes."""
        self._is_stopping = True
        for stream in list(self._streams):
            stream.send_bye()
