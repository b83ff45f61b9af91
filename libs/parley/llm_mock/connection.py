"""HTTP/1.1 on one connection, down to the byte: what faults need, and what makes it fast.

A bare protocol instead of a web framework: an answer that is ready is written while its request is
being read, without a task, and cutting, resetting or stalling a body at a given byte needs the
transport anyway. It knows only what clients of model providers send: requests with a length or in
chunks, one after the other.
"""

import asyncio
import socket
import struct
from collections.abc import Iterable
from typing import assert_never, cast
from urllib.parse import parse_qsl, unquote

from parley.clock import Clock
from parley.llm_mock.desk import Desk, Immediate, Performance
from parley.llm_mock.prepared import LAST_CHUNK, chunk, http_head
from parley.llm_mock.question import HttpRequest
from parley.llm_mock.steps import Drop, Pause, Reset, Send, Stall, Step

HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 256 * 1024 * 1024
WRITE_BYTES = 64 * 1024
LINGER_NOT = struct.pack("ii", 1, 0)


class Malformed(Exception):
    """Bytes that are no request."""


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(
        self, desk: Desk, clock: Clock, tasks: asyncio.TaskGroup, open_ones: set["Connection"]
    ) -> None:
        self._desk = desk
        self._clock = clock
        self._tasks = tasks
        self._open_ones = open_ones
        self._received = bytearray()
        self._playing: asyncio.Task[None] | None = None
        self._is_last = False
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)  # That of uvloop is one by its ways.
        # asyncio does not do it for a socket that others made; small events would be held back.
        raw = self._transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop what was being sent."""
        self._open_ones.discard(self)
        if self._playing is not None:
            self._playing.cancel()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Go on."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._received += data
        self._serve()

    def abort(self) -> None:
        """End the connection at once."""
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
            case Immediate(data):
                self._transport.write(data)
                self._close_if_last()
            case Performance() as performance:
                self._desk.tally.opened()
                self._playing = self._tasks.create_task(self._perform(performance))

    async def _perform(self, performance: Performance) -> None:
        try:
            if performance.wait_s:
                await self._clock.sleep(performance.wait_s)
            self._transport.write(performance.head)
            await self._play(performance.steps)
        finally:
            self._desk.tally.closed()
            self._playing = None
        self._close_if_last()
        self._serve()

    def _close_if_last(self) -> None:
        if self._is_last:
            self._transport.close()

    async def _play(self, steps: Iterable[Step]) -> None:
        """Write the body; what comes without a pause between goes out in one piece."""
        pending = bytearray()
        for step in steps:
            match step:
                case Send(data):
                    pending += chunk(data)
                    if len(pending) > WRITE_BYTES:
                        await self._write(pending)
                        if self._transport.is_closing():
                            return  # Nobody listens any more, and an endless body would not end.
                case Pause(seconds):
                    await self._write(pending)
                    await self._clock.sleep(seconds)
                case Stall():
                    await self._write(pending)
                    await asyncio.get_running_loop().create_future()
                case Drop():
                    await self._write(pending)
                    self._transport.close()
                    return
                case Reset():
                    await self._write(pending)
                    self._reset()
                    return
                case _:
                    assert_never(step)
        pending += LAST_CHUNK
        await self._write(pending)

    async def _write(self, pending: bytearray) -> None:
        if pending:
            self._transport.write(bytes(pending))
            pending.clear()
        await self._writable.wait()

    def _reset(self) -> None:
        """Send a RST instead of a FIN."""
        raw = self._transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self._transport.abort()

    def _next_request(self) -> HttpRequest | None:
        """Take one request off what was received, if one is there."""
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
        return HttpRequest(
            method, target, unquote(path), dict(parse_qsl(query, True)), headers, body
        )


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
