"""HTTP/1.1 for answers that stream: bytes are given on in the callback that receives them."""

from chatd.providers.http.address import Address
from chatd.providers.http.beats import Beats, FakeBeats, NoBeats
from chatd.providers.http.connection import Response
from chatd.providers.http.errors import (
    AddressInvalid,
    AnswerMalformed,
    ConnectionCut,
    HeaderInvalid,
    HttpError,
    NotConnected,
)
from chatd.providers.http.pool import Connections, HttpOptions

__all__ = [
    "Address",
    "AddressInvalid",
    "AnswerMalformed",
    "Beats",
    "ConnectionCut",
    "Connections",
    "FakeBeats",
    "HeaderInvalid",
    "HttpError",
    "HttpOptions",
    "NoBeats",
    "NotConnected",
    "Response",
]
