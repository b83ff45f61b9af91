"""Connections that are kept for the next call to the same address."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ssl import SSLContext, SSLError, create_default_context
from types import TracebackType
from typing import Self

import aiohappyeyeballs

from parley.http.address import Address
from parley.http.connection import Connection, Response
from parley.http.errors import HeaderInvalid, NotConnected
from parley.http.flush_timer import FlushTimer, NoFlushTimer
from parley.http.names import Names

# The delay before the next address of a host is tried (happy eyeballs).
NEXT_ADDRESS_S = 0.25
OWN_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "parley"}
# Headers of callers that are not sent: this module sets the framing.
FRAMING = frozenset({"content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How connections are made and kept.

    Attributes:
        connect_s: How long connecting may take.
        idle_s: How long an unused connection is kept.
        trust: The TLS trust store; None for that of the machine.
    """

    connect_s: float = 10.0
    idle_s: float = 30.0
    trust: SSLContext | None = None


class Connections:
    """Opens and keeps connections; only the number of concurrent calls limits their number."""

    def __init__(
        self, options: HttpOptions | None = None, flush_timer: FlushTimer | None = None
    ) -> None:
        self._options = options or HttpOptions()
        self._flush_timer = flush_timer or NoFlushTimer()
        self._trust = self._options.trust
        self._all: set[Connection] = set()
        self._idle: dict[Address, dict[Connection, asyncio.TimerHandle]] = {}
        self._names = Names()
        self._is_open = False
        self._is_empty = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Allow connections."""
        self._is_open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close all connections."""
        self._is_open = False
        for kept in self._idle.values():
            for timer in kept.values():
                timer.cancel()
        self._idle.clear()
        for connection in self._all:
            connection.close()
        if self._all:
            await self._is_empty.wait()  # Transports call connection_lost in the next turn.

    async def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        connected: Callable[[], None] = lambda: None,
    ) -> Response:
        """Send a POST request and return the answer once its head arrived; the caller closes it.

        Args:
            url: Where to send it.
            headers: The headers, except for those of the framing, which are set here.
            body: The request body.
            connected: Is called immediately before the request is sent.

        Raises:
            HttpError: the exchange failed.
            OSError: the connection broke or its certificate is not trusted.
        """
        return await self._request("POST", url, headers, body, connected)

    async def get(self, url: str, headers: Mapping[str, str]) -> Response:
        """Send a GET request; otherwise as `post`."""
        return await self._request("GET", url, headers, b"", lambda: None)

    async def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        connected: Callable[[], None],
    ) -> Response:
        address, path = Address.read(url)
        length = [] if method == "GET" else [f"Content-Length: {len(body)}"]
        head = _head([f"{method} {path} HTTP/1.1", *length], address, headers)
        connection = self._kept(address) or await self._connected(address)
        try:
            connected()
            answer = await connection.ask(head, body)
        except BaseException:
            connection.close()
            raise
        return Response(answer, connection, lambda used: self._keep(address, used))

    def _kept(self, address: Address) -> Connection | None:
        """Return the connection that was used last, so that the others reach their idle timeout."""
        kept = self._idle.get(address)
        while kept:
            connection, timer = kept.popitem()
            timer.cancel()
            if connection.is_open:
                return connection
        return None

    async def _connected(self, address: Address) -> Connection:
        if not self._is_open:
            raise RuntimeError("open the connections first: async with Connections(...)")
        try:
            async with asyncio.timeout(self._options.connect_s):
                return await self._dialled(address)
        except SSLError:
            raise
        except OSError as error:
            raise NotConnected(address.host, error) from error

    async def _dialled(self, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        infos = await self._names.addresses(address.host, address.port)
        sock = await aiohappyeyeballs.start_connection(
            infos, happy_eyeballs_delay=NEXT_ADDRESS_S, loop=loop
        )
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _, connection = await loop.create_connection(
                lambda: Connection(self._lost, self._flush_timer),
                sock=sock,
                ssl=self._secured() if address.is_secure else None,
                server_hostname=address.host if address.is_secure else None,
            )
        except BaseException:
            sock.close()
            raise
        self._all.add(connection)
        self._is_empty.clear()
        return connection

    def _secured(self) -> SSLContext:
        if self._trust is None:
            self._trust = create_default_context()
        return self._trust

    def _keep(self, address: Address, connection: Connection) -> None:
        if not self._is_open or self._options.idle_s <= 0:
            connection.close()
            return
        timer = asyncio.get_running_loop().call_later(self._options.idle_s, connection.close)
        self._idle.setdefault(address, {})[connection] = timer

    def _lost(self, connection: Connection) -> None:
        self._all.discard(connection)
        if not self._all:
            self._is_empty.set()
        for address, kept in list(self._idle.items()):
            timer = kept.pop(connection, None)
            if timer is not None:
                timer.cancel()
            if not kept:
                del self._idle[address]


def _head(lines: list[str], address: Address, headers: Mapping[str, str]) -> bytes:
    """Return the head of a request that begins with `lines`.

    Raises:
        HeaderInvalid: a header would make the request malformed.
    """
    named = {name.lower() for name in headers}
    own = {"Host": address.authority, **OWN_HEADERS}
    lines += [f"{name}: {value}" for name, value in own.items() if name.lower() not in named]
    for name, value in headers.items():
        if name.lower() in FRAMING:
            continue
        if not name.isascii() or not f"{name}{value}".replace("\t", " ").isprintable():
            raise HeaderInvalid(name)
        lines.append(f"{name}: {value}")
    return "\r\n".join((*lines, "", "")).encode()
