"""HTTP to untrusted servers: only where the policy allows it, with the identity of each request.

A host is checked twice. Before a request its scheme and port are checked; when a connection is
opened, every address that its name resolves to is checked, and the connection goes to a checked
address, so a later change of the DNS answer has no effect (DNS rebinding). One client serves many
users: the headers of a request are those of the identity in its context, never of the client.
"""

import asyncio
import contextlib
import re
import socket
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextvars import ContextVar
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpcore2
import httpx2

from parley.egress.policy import DEFAULT_PORTS, AddressBlocked, Policy
from parley.foreign_json import ShallowJson, without_halves

CONNECTIONS_MAX: Final = 100
#: Shorter than the 5 s after which common servers close an idle connection: what is sent on one
#: that its server is closing may have been executed or not.
KEEPALIVE_S: Final = 4.0
HEADERS_MAX: Final = 200
HEADER_BYTES_MAX: Final = 64 * 1024
#: Of the body of an error response that is kept.
ERROR_BODY_BYTES_MAX: Final = 1024 * 1024
#: Ends a server-sent event; a line ends with CR, LF or both.
EMPTY_LINE: Final = re.compile(rb"(?>\r\n|\r|\n){2}")
EMPTY_LINE_BYTES_MAX: Final = 4

#: Returns the addresses of a host and port.
Resolve = Callable[[str, int], Awaitable[tuple[str, ...]]]


class ResponseTooLarge(httpx2.TransportError, httpx2.StreamError):
    """A response, or one event of it, is larger than the limit of the server.

    As an error of its stream it fails one request, and not the session that the request is of.
    """


class ResponseEncoded(httpx2.TransportError):
    """A response is compressed although that was not requested; it could become any size.

    Attributes:
        status: The HTTP status.
        headers: The headers.
    """

    def __init__(self, status: int, headers: httpx2.Headers) -> None:
        encoding = headers.get("content-encoding", "")[:64]
        super().__init__(f"the response is encoded as {encoding!r}, which was not requested")
        self.status = status
        self.headers = headers


@dataclass(slots=True)
class Exchange:
    """What happened at HTTP level for one request, which the SDK does not pass on.

    Attributes:
        is_sent: Whether the request may have reached the server.
        status: The HTTP status, if there was a response.
        retry_after: The header of that name.
        challenge: The header WWW-Authenticate.
        error_body: The beginning of the body, as far as it was read, if the status is an error.
        error: The error that ended the request without a response.
        broken: Set together with `error`.
        depth_max: How deep the JSON of further responses may be; deeper values become null. None
            leaves responses as they are.
    """

    is_sent: bool = False
    status: int | None = None
    retry_after: str | None = None
    challenge: str = ""
    error_body: bytearray = field(default_factory=bytearray)
    error: Exception | None = None
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    depth_max: int | None = None

    def fail(self, error: Exception) -> None:
        """Record the error that ends the request."""
        self.error = error
        self.broken.set()

    def adopt(self, other: "Exchange") -> None:
        """Take over what happened to a request that had an exchange of its own."""
        self.is_sent, self.status = other.is_sent, other.status
        self.retry_after, self.challenge = other.retry_after, other.challenge
        self.error_body = other.error_body
        if other.error is not None:
            self.fail(other.error)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose requests are sent, and where to.

    Attributes:
        origin: The scheme, host and port that may get the headers.
        headers: The headers that authorize the requests.
    """

    origin: tuple[str, str, int]
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def at(cls, url: str, headers: Mapping[str, str]) -> "Identity":
        """Return the identity of requests to the origin of a URL."""
        return cls(_origin(httpx2.URL(url)), headers)

    def apply(self, request: httpx2.Request) -> None:
        """Add the headers to a request.

        Raises:
            AddressBlocked: It goes to another origin, for example after a redirect.
        """
        if _origin(request.url) != self.origin:
            where = f"{request.url.host}:{request.url.port or ''}"
            raise AddressBlocked(where, "is not the origin of the server")
        request.headers.update(self.headers)


EXCHANGE: ContextVar[Exchange | None] = ContextVar("egress_exchange", default=None)
IDENTITY: ContextVar[Identity | None] = ContextVar("egress_identity", default=None)


async def resolved(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of a host.

    Raises:
        httpcore2.ConnectError: It has none.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        # A label that is empty or too long is no OSError.
        why = error.strerror if isinstance(error, OSError) else "it is no host name"
        raise httpcore2.ConnectError(f"{host} cannot be resolved: {why}") from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def guarded_client(
    policy: Policy,
    *,
    response_bytes_max: int,
    timeout: httpx2.Timeout,
    resolve: Resolve = resolved,
    connections_max: int = CONNECTIONS_MAX,
) -> httpx2.AsyncClient:
    """Return a client for one server, without credentials, cookies and proxy settings."""
    return httpx2.AsyncClient(
        timeout=timeout,
        transport=GuardedTransport(policy, response_bytes_max, resolve, connections_max),
        # One client serves many users, whose cookies must not be shared.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        trust_env=False,
    )


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests that the policy allows, and records their outcome."""

    def __init__(
        self, policy: Policy, response_bytes_max: int, resolve: Resolve, connections_max: int
    ) -> None:
        self._policy = policy
        self._response_bytes_max = response_bytes_max
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(trust_env=False),
            max_connections=connections_max,
            max_keepalive_connections=CONNECTIONS_MAX,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=_GuardedBackend(policy, resolve),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request."""
        exchange, identity = EXCHANGE.get(), IDENTITY.get()
        if identity is None:
            raise AssertionError("a request without an identity")
        try:
            identity.apply(request)
            # The limit counts bytes as they arrive: compressed ones could become any size.
            request.headers["Accept-Encoding"] = "identity"
            self._policy.check_request(request.url.scheme, request.url.host, request.url.port)
            if exchange is not None:
                # Assumed until the opposite is proven: a cancelled request may have arrived.
                exchange.is_sent = True
                exchange.status, exchange.error_body = None, bytearray()
            response = await self._send(request, exchange)
        except httpx2.TransportError as error:
            if exchange is not None:
                exchange.is_sent = not isinstance(error, NOT_SENT)
                exchange.fail(error)
            raise
        if exchange is not None:
            exchange.status = response.status_code
            exchange.retry_after = response.headers.get("retry-after")
            exchange.challenge = ", ".join(response.headers.get_list("www-authenticate"))
        return response

    async def _send(self, request: httpx2.Request, exchange: Exchange | None) -> httpx2.Response:
        url = request.url
        with _translated():
            response = await self._pool.handle_async_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(
                        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        headers = httpx2.Headers(response.headers)
        size = sum(len(name) + len(value) for name, value in response.headers)
        if len(response.headers) > HEADERS_MAX or size > HEADER_BYTES_MAX:
            await response.aclose()
            raise ResponseTooLarge("the response has too many headers")
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            await response.aclose()
            raise ResponseEncoded(response.status, headers)
        is_stream = headers.get("content-type", "").lower().startswith("text/event-stream")
        # An event stream has no total limit, but each of its events has.
        sizes = EventSizes() if is_stream else BodySize()
        return httpx2.Response(
            response.status,
            headers=headers,
            stream=_BoundedStream(response, sizes, self._response_bytes_max, exchange),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class BodySize:
    """Counts the bytes of a body."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, piece: bytes) -> int:
        """Count a piece, and return the size so far."""
        self._count += len(piece)
        return self._count


class EventSizes:
    """Counts the bytes of server-sent events, each of which ends with an empty line."""

    def __init__(self) -> None:
        self._count = 0
        # The end of what was counted, which may be the beginning of an empty line.
        self._tail = b""

    def add(self, piece: bytes) -> int:
        """Count a piece, and return the size of the largest event that has a part in it."""
        text = self._tail + piece
        before, begin, largest = self._count - len(self._tail), 0, 0
        for end in EMPTY_LINE.finditer(text):
            largest = max(largest, before + end.end() - begin)
            before, begin = 0, end.end()
        self._count = before + len(text) - begin
        self._tail = text[begin:][1 - EMPTY_LINE_BYTES_MAX :]
        return max(largest, self._count)


class _BoundedStream(httpx2.AsyncByteStream):
    """A response body that raises an error when it exceeds the limit."""

    def __init__(
        self,
        response: httpcore2.Response,
        sizes: BodySize | EventSizes,
        bytes_max: int,
        exchange: Exchange | None,
    ) -> None:
        self._response = response
        self._sizes = sizes
        self._bytes_max = bytes_max
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # Escapes are looked at in whole lines of events, and in whole bodies.
        held: list[bytes] = []
        async with contextlib.aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                ends = self._line_ends(piece)
                if ends:
                    yield without_halves(b"".join((*held, piece[:ends])))
                    held = []
                held.append(piece[ends:])
        yield without_halves(b"".join(held))

    def _line_ends(self, piece: bytes) -> int:
        """Return where the last whole line of events ends; 0 in other bodies."""
        return max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1 if self._is_of_events else 0

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield what arrives, up to the limit."""
        depth_max = self._exchange.depth_max if self._exchange is not None else None
        shallow = None if depth_max is None else ShallowJson(depth_max)
        with _translated():
            async for piece in self._response.aiter_stream():
                if self._sizes.add(piece) > self._bytes_max:
                    what = "an event of the response" if self._is_of_events else "the response"
                    error = ResponseTooLarge(f"{what} exceeds {self._bytes_max} bytes")
                    if self._exchange is not None:
                        self._exchange.fail(error)
                    raise error
                if self._exchange is not None and self._response.status >= 400:
                    kept = self._exchange.error_body
                    kept += piece[: ERROR_BODY_BYTES_MAX - len(kept)]
                yield piece if shallow is None else shallow.add(piece)

    @property
    def _is_of_events(self) -> bool:
        return isinstance(self._sizes, EventSizes)

    async def aclose(self) -> None:
        await self._response.aclose()


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections only to checked addresses."""

    def __init__(self, policy: Policy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._inner: Any = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the base class's signature)
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve the host, check its addresses, and connect to the first one that accepts."""
        addresses = await self._resolve(host, port)
        self._policy.check_addresses(host, port, addresses)
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                stream: httpcore2.AsyncNetworkStream = await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return stream
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 (the base class's signature)
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Reject: nothing is reached over Unix sockets."""
        raise AddressBlocked(path, "is a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        """Wait between attempts to connect."""
        await self._inner.sleep(seconds)


NOT_SENT: Final = (
    AddressBlocked,
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
)


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return (url.scheme, url.host, url.port or DEFAULT_PORTS.get(url.scheme, 0))


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Convert errors of httpcore2 to the transport errors of httpx2."""
    try:
        yield
    except (
        httpcore2.NetworkError,
        httpcore2.TimeoutException,
        httpcore2.ProtocolError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
        raise kind(str(error)) from error
