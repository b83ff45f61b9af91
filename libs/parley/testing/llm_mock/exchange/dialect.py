"""One protocol: how its requests are read, its answers written and its refusals worded."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.request import HttpRequest, ParsedRequest, Reply


class Event(NamedTuple):
    """One event of a stream: its name, where the protocol gives it one, and its data."""

    name: str
    data: bytes
    is_delta: bool = False


class Dialect(Protocol):
    """One protocol, with nothing of HTTP in it but headers."""

    def __hash__(self) -> int: ...

    def question(self, request: HttpRequest) -> ParsedRequest:
        """Return what the request asks.

        Raises:
            Refused: the provider would refuse it.
        """
        ...

    def events(self, reply: Reply) -> list[Event]:
        """Return the whole stream."""
        ...

    def whole(self, reply: Reply) -> bytes:
        """Return the answer to a request that wants no stream."""
        ...

    def framed(self, event: Event) -> bytes:
        """Return the event as it goes over the wire, with its places filled already."""
        ...

    def refusal(self, refused: Refused) -> tuple[Mapping[str, str], bytes]:
        """Return headers and body of a refusal."""
        ...

    def overflow(self, tokens: int, tokens_max: int) -> Refused:
        """Return the refusal of a prompt that is too long."""
        ...

    def quota(self) -> Refused:
        """Return the refusal of an account that has nothing left."""
        ...

    def error_event(self) -> Event:
        """Return an event that ends a stream with an error."""
        ...

    @property
    def heartbeat(self) -> bytes:
        """Return what is sent to keep a silent stream alive, framed."""
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
