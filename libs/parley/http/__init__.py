"""An HTTP/1.1 client for streamed answers: bytes are passed on in the callback that reads them."""

from parley.http.address import Address
from parley.http.connection import Response
from parley.http.errors import (
    AddressInvalid,
    AnswerMalformed,
    ConnectionCut,
    HeaderInvalid,
    HttpError,
    NotConnected,
)
from parley.http.flush_timer import FlushTimer, NoFlushTimer
from parley.http.pool import Connections, HttpOptions

__all__ = [
    "Address",
    "AddressInvalid",
    "AnswerMalformed",
    "ConnectionCut",
    "Connections",
    "FlushTimer",
    "HeaderInvalid",
    "HttpError",
    "HttpOptions",
    "NoFlushTimer",
    "NotConnected",
    "Response",
]
