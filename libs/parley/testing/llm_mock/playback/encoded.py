"""Encoded answers, cached for each distinct reply."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from parley.testing.llm_mock.exchange.dialect import Dialect, Event
from parley.testing.llm_mock.exchange.placeholders import IDENTITY, PlaceholderValues
from parley.testing.llm_mock.exchange.request import Reply
from parley.testing.llm_mock.playback.steps import AS_IS, Send, Step

ANSWERS_MAX = 256
LAST_CHUNK = b"0\r\n\r\n"
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}


@dataclass(frozen=True, slots=True)
class EncodedAnswer:
    """An encoded answer with placeholders for the values that differ each time.

    Attributes:
        head: Status line and headers.
        events: The events of the body; an answer without a stream is one event.
        burst: Head and body together; empty if the framing depends on the filled values.
        deltas_at: The offset of each delta in the burst.
    """

    head: bytes
    events: tuple[Event, ...]
    burst: bytes
    deltas_at: tuple[int, ...]

    def filled(self, filling: PlaceholderValues) -> Iterator[Event]:
        """Yield the events with their placeholders filled."""
        for event in self.events:
            yield event._replace(data=filling.fill(event.data))

    def pieces(self, filled: bytes) -> Iterator[bytes]:
        """Yield the filled burst in pieces: up to the first delta, and from each to the next."""
        for begin, end in pairwise((0, *self.deltas_at, len(filled))):
            yield filled[begin:end]


@lru_cache(maxsize=ANSWERS_MAX)
def prepare_stream(dialect: Dialect, reply: Reply, *, is_checksummed: bool) -> EncodedAnswer:
    """Return the reply encoded as a stream."""
    events = tuple(dialect.events(reply))
    head = http_head(200, {"content-type": dialect.stream_type, **_request_ids()})
    if is_checksummed:
        return EncodedAnswer(head, events, b"", ())
    burst, deltas_at = bytearray(head), []
    for event in events:
        if event.is_delta:
            deltas_at.append(len(burst))
        burst += chunk(dialect.framed(event))
    return EncodedAnswer(head, events, bytes(burst + LAST_CHUNK), tuple(deltas_at))


@lru_cache(maxsize=ANSWERS_MAX)
def prepare_whole(dialect: Dialect, reply: Reply) -> EncodedAnswer:
    """Return the reply encoded without a stream."""
    body = dialect.whole(reply)
    head = http_head(200, {"content-type": "application/json", **_request_ids()})
    event = Event(AS_IS, body, is_delta=True)
    return EncodedAnswer(head, (event,), head + chunk(body) + LAST_CHUNK, (len(head),))


def http_head(status: int, headers: Mapping[str, str], length: int | None = None) -> bytes:
    """Return status line and headers; a body without a length is chunked."""
    measure = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    lines = [f"{name}: {value}" for name, value in headers.items()]
    first = f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"
    return "\r\n".join((first, *lines, measure, "", "")).encode()


def chunk(data: bytes) -> bytes:
    """Return one chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def in_chunks(head: bytes, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the head and the steps of a body in chunks."""
    yield Send(head)
    for step in steps:
        yield Send(chunk(step.data)) if isinstance(step, Send) else step
    yield Send(LAST_CHUNK)


def _request_ids() -> dict[str, str]:
    return {"request-id": f"req_{IDENTITY}", "x-request-id": f"req_{IDENTITY}"}
