"""A wire format: how a request becomes bytes, and how the bytes that come back become events."""

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
    """A request as it leaves: everything but the connection."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    framing: Framing = Framing.SERVER_SENT_EVENTS


class Decoder(Protocol):
    """Reads one answer, event by event; raises nothing but `ProviderFailed`."""

    def decode(self, data: bytes) -> Iterable[ModelEvent]:
        """Return what the data of one event on the wire means.

        Raises:
            ProviderFailed: the event reports an error or cannot be read.
        """
        ...

    def end(self) -> Iterable[ModelEvent]:
        """Return what is left to say once the body ended.

        Raises:
            ProviderFailed: the answer was cut off before its last event.
        """
        ...


class Wire(Protocol):
    """One wire format; pure."""

    def request(self, request: ModelRequest, target: Target) -> HttpRequest:
        """Return what to send.

        Raises:
            ModelError: the provider would have to refuse it; says what to do instead.
        """
        ...

    def decoder(self) -> Decoder:
        """Return a decoder for one answer."""
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """All that is known of a call that failed, before anybody judged it.

    Attributes:
        text: What the failure says of itself.
        status_code: Status of the answer, or the one that an event in the stream names; else 0.
        headers: Headers of the answer, names in lower case.
        body: The beginning of the answer's body.
        is_cut_off: The stream ended before its last event.
        is_garbled: The stream holds bytes that make no sense, such as broken JSON.
        is_transport: The connection failed; the provider itself said nothing.
        is_unreachable: It failed before the first byte of an answer.
        reset_code: Name of the HTTP/2 code that the other side closed with; else empty.
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
    """A call failed; what that means is the classifier's to say."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure
