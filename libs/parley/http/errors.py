"""What can go wrong with an exchange over HTTP.

HttpError
├── AddressInvalid    what was to be asked is no address
├── HeaderInvalid     a header that would break the request apart
├── NotConnected      nobody could be reached at the address
├── ConnectionCut     the other side went away before its answer was complete
└── AnswerMalformed   what came back is no HTTP
"""

import os
import socket


class HttpError(Exception):
    """An exchange that failed."""


class AddressInvalid(HttpError):
    """An address that cannot be asked."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the address {why}")


class HeaderInvalid(HttpError):
    """A header that must not be sent; its value is told to nobody, since it may be a key."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the header {name!r} holds a line break or a control character")
        self.name = name


class NotConnected(HttpError):
    """No connection came to stand; told without the port, which is no status."""

    def __init__(self, host: str, cause: OSError) -> None:
        super().__init__(f"cannot connect to {host}: {_why(cause)}")
        self.host = host


class ConnectionCut(HttpError):
    """The connection ended before the answer did."""

    def __init__(self, cause: Exception | None = None) -> None:
        super().__init__(str(cause or "") or "the connection was closed")


class AnswerMalformed(HttpError):
    """Bytes that are no answer."""


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
