"""The HTTP protocol of one connection, with bounds on what anyone may send before being known.

uvicorn keeps all of a request's head until it is complete, however long that takes and however
large it grows. Here the head has a size and a time. What is no HTTP at all is answered with a
problem document like everything else, though a short one: there is no request to tell about.
"""

import asyncio
import socket
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.errors import PROBLEM_MEDIA_TYPE

HEAD_BYTES_MAX = 64 * 1024
HEAD_S_MAX = 10.0
# With a heartbeat every 15 s, a stream whose client vanished is released within 45 s.
UNACKNOWLEDGED_MS_MAX = 25_000


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """How large the head of a request may be, trailers included, and how long it may take."""

    bytes_max: int = HEAD_BYTES_MAX
    s_max: float = HEAD_S_MAX


class HeadTooLarge(Exception):
    """A request whose head is larger than heads may be."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which refuses heads that are too large and leaves ones that are too slow.

    Whatever arrives between two pieces of requests, a head or some of a body, counts as head: the
    parser holds it until the piece is whole.
    """

    def __init__(self, *, limits: HeadLimits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._held_bytes = 0
        self._chunk_bytes = 0
        self._field_bytes = 0
        self._is_head_awaited = True
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        _give_up_on_the_silent(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and refuse what is held for too large a head."""
        if self._is_head_awaited:
            self._await_head()
        self._chunk_bytes = len(data)
        super().data_received(data)
        self._held_bytes += self._chunk_bytes
        if self._held_bytes > self._limits.bytes_max and not self.transport.is_closing():
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _too_large(self._limits))

    def on_message_begin(self) -> None:
        """Count the fields anew."""
        super().on_message_begin()
        self._field_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header or a trailer."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request."""
        self._is_head_awaited = False
        self._stop_waiting()
        self._forget_held()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._forget_held()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        self._is_head_awaited = True
        self._forget_held()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what could not be parsed."""
        if self._field_bytes > self._limits.bytes_max:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _too_large(self._limits))
        else:
            detail = "This is not a request of HTTP/1.1 with a method that is known here."
            self._refuse(HTTPStatus.BAD_REQUEST, detail)

    def _count(self, field_bytes: int) -> None:
        self._field_bytes += field_bytes
        if self._field_bytes > self._limits.bytes_max:
            # The parser ends with it and has `send_400_response` called.
            raise HeadTooLarge

    def _forget_held(self) -> None:
        self._held_bytes = self._chunk_bytes = 0

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._limits.s_max, self._leave)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _leave(self) -> None:
        self._head_timer = None
        # What came behind a request that is still being answered does not end the answer.
        if not self._is_answering():
            self.transport.close()

    def _is_answering(self) -> bool:
        # uvicorn declares it as always there.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        if not self._is_answering():
            self.transport.write(_problem(status, detail))
        self.transport.close()


def _give_up_on_the_silent(transport: asyncio.Transport) -> None:
    """Have the system drop a connection whose other end acknowledges nothing, or takes nothing."""
    connected = transport.get_extra_info("socket")
    if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS_MAX)


def _too_large(limits: HeadLimits) -> str:
    return f"The head of a request may have {limits.bytes_max} bytes; send less."


def _problem(status: HTTPStatus, detail: str) -> bytes:
    code = status.name
    document = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
        "code": code,
        "retryable": False,
    }
    body = msgspec.json.encode(document)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"content-type: {PROBLEM_MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
        "cache-control: no-store\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
