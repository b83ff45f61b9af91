"""Errors of an HTTP exchange.

HttpError
├── AddressInvalid    the URL is not a valid HTTP address
├── HeaderInvalid     a header would make the request malformed
├── NotConnected      no connection to the address could be made
├── ConnectionCut     the peer closed the connection before its answer was complete
└── AnswerMalformed   the answer is not valid HTTP
"""

import os
import socket


class HttpError(Exception):
    """An exchange that failed."""


class AddressInvalid(HttpError):
    """A URL that cannot be requested."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the address {why}")


class HeaderInvalid(HttpError):
    """A header that must not be sent; the error omits its value, which may be a key."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the header {name!r} holds a line break or a control character")
        self.name = name


class NotConnected(HttpError):
    """No connection could be made; the text omits the port, which could be read as a status."""

    def __init__(self, host: str, cause: OSError) -> None:
        super().__init__(f"cannot connect to {host}: {_why(cause)}")
        self.host = host


class ConnectionCut(HttpError):
    """The connection ended before the answer was complete."""

    def __init__(self, cause: Exception | None = None) -> None:
        super().__init__(str(cause or "") or "the connection was closed")


class AnswerMalformed(HttpError):
    """The received bytes are not a valid answer."""


def _why(cause: OSError) -> str:
    match cause:
        case TimeoutError():
            return "it did not answer in time"
        case socket.gaierror(strerror=str(words)):
            return words
        case OSError(errno=int(number)):
            return os.strerror(number)
        case _:
            return type(cause).__name__
