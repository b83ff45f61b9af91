"""HTTP/1.1 on one connection at the level of bytes, for faults and for speed.

A plain protocol instead of a web framework: no answer has a task of its own, one that is ready is
written while its request is being read, and closing, resetting or stalling a body at a given byte
needs the transport anyway. It supports only what clients of model providers send: requests with a
length or in chunks, one after the other.
"""

import asyncio
import socket
from typing import assert_never, cast
from urllib.parse import parse_qsl, unquote

from parley.testing.llm_mock.exchange.request import HttpRequest
from parley.testing.llm_mock.http.handler import ReadyAnswer, RequestHandler, TimedAnswer
from parley.testing.llm_mock.playback.encoded import http_head
from parley.testing.llm_mock.playback.player import Player
from parley.testing.llm_mock.playback.timers import Timers

HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 256 * 1024 * 1024


class Malformed(Exception):
    """The bytes are not a valid request."""


class Connection(asyncio.Protocol):
    """The connection of one client."""

    def __init__(
        self, desk: RequestHandler, schedule: Timers, open_ones: set["Connection"]
    ) -> None:
        self._desk = desk
        self._schedule = schedule
        self._open_ones = open_ones
        self._received = bytearray()
        self._playing: Player | None = None
        self._is_last = False
        self._is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has the same methods.
        # asyncio does not set it for a socket created elsewhere; small events would be delayed.
        raw = self._transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the answer in progress."""
        self._open_ones.discard(self)
        if self._playing is not None:
            self._playing.stop()
            self._desk.tally.closed()

    def pause_writing(self) -> None:
        """Pause the answer until the client reads."""
        self._is_full = True
        if self._playing is not None:
            self._playing.is_full = True

    def resume_writing(self) -> None:
        """Resume the answer."""
        self._is_full = False
        if self._playing is not None:
            self._playing.resume()

    def data_received(self, data: bytes) -> None:
        """Answer every complete request."""
        self._received += data
        self._serve()

    def abort(self) -> None:
        """Abort the connection."""
        self._transport.abort()

    def _serve(self) -> None:
        try:
            while self._playing is None and not self._transport.is_closing():
                request = self._next_request()
                if request is None:
                    return
                self._is_last = request.headers.get("connection", "").lower() == "close"
                self._answer(request)
        except Malformed as error:
            body = f"mock: {error}\n".encode()
            self._transport.write(http_head(400, {"connection": "close"}, len(body)) + body)
            self._transport.close()

    def _answer(self, request: HttpRequest) -> None:
        match self._desk.answer(request):
            case ReadyAnswer(data):
                self._transport.write(data)
                self._close_if_last()
            case TimedAnswer(steps):
                self._desk.tally.opened()
                self._playing = Player(
                    steps, self._transport, self._schedule, self._played, self._is_full
                )
                self._playing.go_on()
            case answer:
                assert_never(answer)

    def _played(self) -> None:
        self._desk.tally.closed()
        self._playing = None
        self._close_if_last()
        # Not called directly: the code that reads the requests may be the caller.
        asyncio.get_running_loop().call_soon(self._serve)

    def _close_if_last(self) -> None:
        if self._is_last:
            self._transport.close()

    def _next_request(self) -> HttpRequest | None:
        """Remove one request from the received bytes, if it is complete."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > HEAD_BYTES_MAX:
                raise Malformed("the head of the request is too long")
            return None
        method, target, headers = _head(bytes(self._received[:end]))
        begin = end + 4
        if headers.get("transfer-encoding", "").lower() == "chunked":
            found = _chunked(self._received, begin)
        else:
            found = _sized(self._received, begin, headers.get("content-length", "0"))
        if found is None:
            if headers.pop("expect", "") and len(self._received) == begin:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        body, used = found
        del self._received[:used]
        path, _, query = target.partition("?")
        named = dict(parse_qsl(query, True)) if query else {}
        return HttpRequest(method, target, unquote(path), named, headers, body)


def _head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[1].startswith("/"):
        raise Malformed("the first line is no request of HTTP/1.1")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return parts[0], parts[1], headers


def _sized(received: bytearray, begin: int, length: str) -> tuple[bytes, int] | None:
    if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
        raise Malformed("content-length is no number, or too large")
    end = begin + int(length)
    return (bytes(received[begin:end]), end) if len(received) >= end else None


def _chunked(received: bytearray, begin: int) -> tuple[bytes, int] | None:
    body = bytearray()
    while True:
        end = received.find(b"\r\n", begin)
        if end < 0:
            return None
        try:
            size = int(bytes(received[begin:end]).partition(b";")[0], 16)
        except ValueError as error:
            raise Malformed("a chunk has no size") from error
        begin = end + 2
        if len(body) + size > BODY_BYTES_MAX:
            raise Malformed("the body is too large")
        if len(received) < begin + size + 2:
            return None
        body += received[begin : begin + size]
        begin += size + 2
        if size == 0:
            return bytes(body), begin
