"""HTTP/1.1 for answers that stream: bytes are given on in the callback that receives them."""

from parley.http.address import Address
from parley.http.beats import Beats, FakeBeats, NoBeats
from parley.http.connection import Response
from parley.http.errors import (
    AddressInvalid,
    AnswerMalformed,
    ConnectionCut,
    HeaderInvalid,
    HttpError,
    NotConnected,
)
from parley.http.pool import Connections, HttpOptions

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
