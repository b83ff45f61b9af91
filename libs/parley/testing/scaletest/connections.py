"""HTTP/1.1 on plain asyncio: requests on persistent connections, and event streams."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

from parley.testing.scaletest.frames import (
    BROKEN,
    HEAD_END,
    Dechunker,
    Frame,
    Framer,
    Head,
    read_head,
)
from parley.testing.scaletest.plan import Target

Take = Callable[[Frame], None]
P = TypeVar("P", bound=asyncio.Protocol)


class Dialer:
    """Opens connections to one server."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._tls = ssl.create_default_context() if target.is_tls else None

    async def connect(self, protocol: Callable[[], P]) -> P:
        """Return the protocol of a new connection.

        Raises:
            OSError: The server cannot be reached.
        """
        target, loop = self._target, asyncio.get_running_loop()
        _, made = await loop.create_connection(protocol, target.host, target.port, ssl=self._tls)
        return made


class _Answering(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_lost = False
        self._answer: asyncio.Future[tuple[Head, bytes]] | None = None
        self._head: Head | None = None
        self._dechunker = Dechunker()
        self._data = b""
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._finish(BROKEN)

    def data_received(self, data: bytes) -> None:
        try:
            self._take(data)
        except ValueError:
            assert self.transport is not None
            self.transport.abort()

    async def ask(self, request: bytes) -> tuple[Head, bytes]:
        """Send a request and return its answer; status 0 if the connection broke."""
        if self.is_lost:
            return BROKEN, b""
        assert self.transport is not None
        self._head, self._dechunker, self._data, self._body = None, Dechunker(), b"", b""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        try:
            return await self._answer
        finally:
            if not self._answer.done() or self._answer.cancelled():
                self.transport.abort()

    def _take(self, data: bytes) -> None:
        if self._head is None:
            self._data += data
            head, end, rest = self._data.partition(HEAD_END)
            if not end:
                return
            self._head, data = read_head(head), rest
        head_now = self._head
        self._body += self._dechunker.feed(data) if head_now.is_chunked else data
        if head_now.is_chunked:
            is_whole = self._dechunker.is_over
        else:
            is_whole = len(self._body) >= (head_now.length or 0)
        if is_whole:
            self._finish(head_now)

    def _finish(self, head: Head) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((head, self._body))


class Requests:
    """Sends requests, each on a connection of its own while it runs; connections are reused."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._idle: list[_Answering] = []

    async def ask(self, request: bytes) -> tuple[Head, bytes]:
        """Return the answer to a request; status 0 if there was none."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_lost:
                continue
            head, body = await connection.ask(request)
            if head.status:
                self._keep(connection, head)
                return head, body
            # The server may just have closed it; retry on a new connection.
        try:
            connection = await self._dialer.connect(_Answering)
        except OSError:
            return BROKEN, b""
        head, body = await connection.ask(request)
        self._keep(connection, head)
        return head, body

    def close(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            assert connection.transport is not None
            connection.transport.abort()
        self._idle.clear()

    def _keep(self, connection: _Answering, head: Head) -> None:
        if head.is_closing:
            assert connection.transport is not None
            connection.transport.abort()
        elif head.status:
            self._idle.append(connection)


class EventReader(asyncio.Protocol):
    """One connection with an event stream.

    Attributes:
        opened: The head of the answer, once it arrived.
        closed: Set when the connection is closed.
    """

    def __init__(self, request: bytes, take: Take) -> None:
        loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[Head] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.received_bytes = 0
        self._request = request
        self._take = take
        self._transport: asyncio.Transport | None = None
        self._head: Head | None = None
        self._data = b""
        self._dechunker = Dechunker()
        self._framer = Framer()
        self._is_cut = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Request the stream."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        """Set `closed`."""
        if not self.opened.done():
            self.opened.set_result(BROKEN)
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Pass the events on."""
        if self._is_cut:
            return
        self.received_bytes += len(data)
        with suppress(ValueError):
            self._read(data)
            return
        self.cut()

    def cut(self) -> None:
        """Close the connection immediately; received bytes that were not passed on are dropped."""
        self._is_cut = True
        if self._transport is not None:
            self._transport.abort()

    def _read(self, data: bytes) -> None:
        if self._head is None:
            self._data += data
            head, end, rest = self._data.partition(HEAD_END)
            if not end:
                return
            self._head, data = read_head(head), rest
            if not self.opened.done():
                self.opened.set_result(self._head)
        if self._head.status != 200:
            self.cut()
            return
        body = self._dechunker.feed(data) if self._head.is_chunked else data
        for frame in self._framer.feed(body):
            self._take(frame)
            if self._is_cut:
                return
        if self._dechunker.is_over:
            self.cut()
