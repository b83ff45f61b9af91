"""One protocol: parses requests, and encodes answers and refusals."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.request import HttpRequest, ParsedRequest, Reply


class Event(NamedTuple):
    """One event of a stream: its name, if the protocol has one, and its data."""

    name: str
    data: bytes
    is_delta: bool = False


class Dialect(Protocol):
    """One protocol, independent of HTTP except for headers."""

    def __hash__(self) -> int: ...

    def question(self, request: HttpRequest) -> ParsedRequest:
        """Parse the request.

        Raises:
            Refused: the provider would refuse it.
        """
        ...

    def events(self, reply: Reply) -> list[Event]:
        """Return the whole stream."""
        ...

    def whole(self, reply: Reply) -> bytes:
        """Return the answer to a request without a stream."""
        ...

    def framed(self, event: Event) -> bytes:
        """Return the encoded event, with its placeholders filled already."""
        ...

    def refusal(self, refused: Refused) -> tuple[Mapping[str, str], bytes]:
        """Return headers and body of a refusal."""
        ...

    def overflow(self, tokens: int, tokens_max: int) -> Refused:
        """Return the refusal of a prompt that is too long."""
        ...

    def quota(self) -> Refused:
        """Return the refusal for an exhausted quota."""
        ...

    def error_event(self) -> Event:
        """Return an event that ends a stream with an error."""
        ...

    @property
    def heartbeat(self) -> bytes:
        """Return the framed heartbeat of a silent stream."""
        ...

    @property
    def stream_type(self) -> str:
        """Return the content type of a stream."""
        ...


def server_sent(event: Event) -> bytes:
    """Return an event as a server-sent event."""
    if event.name:
        return b"event: %b\ndata: %b\n\n" % (event.name.encode(), event.data)
    return b"data: %b\n\n" % event.data
