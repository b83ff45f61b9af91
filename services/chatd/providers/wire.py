"""A wire format: encodes a request as bytes, and decodes the received bytes into events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from chatd.models.domain.language_model import ModelEvent, ModelRequest
from chatd.models.engine.target import Target


class Framing(StrEnum):
    """How events are separated on the wire."""

    SERVER_SENT_EVENTS = "server_sent_events"
    AWS_EVENT_STREAM = "aws_event_stream"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request, without the connection."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    framing: Framing = Framing.SERVER_SENT_EVENTS


class Decoder(Protocol):
    """Decodes one answer, event by event; raises only `ProviderFailed`."""

    def decode(self, data: bytes) -> Iterable[ModelEvent]:
        """Return the model events of one event's data.

        Raises:
            ProviderFailed: The event reports an error or cannot be decoded.
        """
        ...

    def end(self) -> Iterable[ModelEvent]:
        """Return the remaining events once the body ended.

        Raises:
            ProviderFailed: The answer was cut off before its last event.
        """
        ...


class Wire(Protocol):
    """One wire format; pure."""

    def request(self, request: ModelRequest, target: Target) -> HttpRequest:
        """Return the HTTP request.

        Raises:
            ModelError: The provider would reject it; the message says what to do instead.
        """
        ...

    def decoder(self) -> Decoder:
        """Return a decoder for one answer."""
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """The data of a failed call, before it is classified.

    Attributes:
        text: The text of the failure.
        status_code: Status of the response, or the one that an event in the stream names; else 0.
        headers: Headers of the response, names in lower case.
        body: The beginning of the response body.
        is_cut_off: The stream ended before its last event.
        is_garbled: The stream contains malformed data, such as broken JSON.
        is_transport: The connection failed; there was no response of the provider.
        is_unreachable: It failed before the first byte of an answer.
        reset_code: Name of the HTTP/2 error code that the peer closed with; else empty.
    """

    text: str
    status_code: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_cut_off: bool = False
    is_garbled: bool = False
    is_transport: bool = False
    is_unreachable: bool = False
    reset_code: str = ""


class ProviderFailed(Exception):
    """A call failed; the classifier turns it into a `ModelError`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure
