"""All open streams of this process; one task per second sends heartbeats and ends old streams."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn, Protocol

from opentelemetry.metrics import Meter, Observation

from parley.clock import Clock

TICK_S = 1.0
OPEN: Final = "gateway.streams.open"
OVERFLOWED: Final = "gateway.streams.overflowed"


class OpenStream(Protocol):
    """A stream with a lifetime and heartbeats."""

    def tick(self, now: float) -> None:
        """Send a heartbeat after a silence, or end the stream after its lifetime."""
        ...

    def send_bye(self) -> None:
        """End the stream, because the process stops."""
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
        """Register a stream while the context lasts."""
        self._streams[stream] = None
        if self._is_stopping:
            stream.send_bye()
        try:
            yield
        finally:
            del self._streams[stream]

    def overflowed(self) -> None:
        """Count a client whose queue was full and that got `resync`."""
        self._overflowed += 1

    def measure(self, meter: Meter) -> None:
        """Register the metrics, which are computed when they are read."""
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
        """Call `tick` of every stream, every second."""
        while True:
            await self._clock.sleep(TICK_S)
            now = self._clock.monotonic()
            for stream in list(self._streams):
                stream.tick(now)

    def stop(self) -> None:
        """Send bye on all streams, and on those that are opened later."""
        self._is_stopping = True
        for stream in list(self._streams):
            stream.send_bye()
