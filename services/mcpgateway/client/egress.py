"""The egress policy: HTTP only to public addresses over TLS, and to others that are allowed.

A host is checked twice. Before a request its scheme and port are checked; when a connection is
opened, every address that its name resolves to is checked, and the connection goes to a checked
address, so a later change of the DNS answer has no effect (DNS rebinding).
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, Self
from urllib.parse import urlsplit

import httpcore2
import httpx2

from parley.public_addresses import is_public

CONNECTIONS_MAX: Final = 100
KEEPALIVE_S: Final = 60.0
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class AddressBlocked(httpx2.TransportError):
    """The address is private, or the scheme is plain HTTP, and the operator did not allow it.

    Attributes:
        host_port: The host and port.
    """

    def __init__(self, host_port: str, problem: str) -> None:
        super().__init__(
            f"{host_port} {problem}; the operator can name it in MCPGATEWAY_ALLOWED_HOSTS"
        )
        self.host_port = host_port


class ResponseTooLarge(httpx2.TransportError):
    """A response is larger than the limit of the server."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The hosts that may be reached besides public ones over TLS.

    Attributes:
        allowed: Exact host:port texts in lower case.
    """

    allowed: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse comma-separated host:port entries.

        Raises:
            ValueError: One of them is not host:port.
        """
        host_ports = [part.strip().lower() for part in text.split(",") if part.strip()]
        for host_port in host_ports:
            host, _, port = host_port.rpartition(":")
            if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
                raise ValueError(f"{host_port!r} is not HOST:PORT")
        return cls(frozenset(host_ports))

    def __str__(self) -> str:
        return ",".join(sorted(self.allowed))

    def with_url(self, url: str) -> "Policy":
        """Return a policy that also allows the host and port of `url`."""
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
        return Policy(self.allowed | {_host_port(parts.hostname or "", port)})

    def check_request(self, scheme: str, host: str, port: int | None) -> None:
        """Reject plain HTTP to a host that is not explicitly allowed.

        Raises:
            AddressBlocked: The request must not be sent.
        """
        host_port = _host_port(host, port or DEFAULT_PORTS.get(scheme, 0))
        if scheme != "https" and host_port not in self.allowed:
            raise AddressBlocked(host_port, "is reached by plain HTTP")

    def check_addresses(self, host: str, port: int, addresses: Iterable[str]) -> None:
        """Reject a host that resolves to an address which is not public.

        Raises:
            AddressBlocked: The connection must not be opened.
        """
        if _host_port(host, port) in self.allowed:
            return
        for address in addresses:
            if not is_public(address):
                raise AddressBlocked(_host_port(host, port), "is not a public address")


@dataclass(slots=True)
class Exchange:
    """What happened at HTTP level for one request, which the SDK does not pass on.

    Attributes:
        is_sent: Whether the request may have reached the server.
        status: The HTTP status, if there was a response.
        retry_after: The header of that name.
        error: The error that ended the request without a response.
        broken: Set together with `error`.
    """

    is_sent: bool = False
    status: int | None = None
    retry_after: str | None = None
    error: Exception | None = None
    broken: asyncio.Event = field(default_factory=asyncio.Event)


EXCHANGE: ContextVar[Exchange | None] = ContextVar("mcpgateway_exchange", default=None)


def guarded_client(
    policy: Policy,
    *,
    headers: Mapping[str, str],
    response_bytes_max: int,
    timeout: httpx2.Timeout,
) -> httpx2.AsyncClient:
    """Return a client for one server, without cookies and proxy settings."""
    return httpx2.AsyncClient(
        headers=dict(headers),
        timeout=timeout,
        transport=GuardedTransport(policy, response_bytes_max),
        # One client serves many users, whose cookies must not be shared.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        trust_env=False,
    )


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests that the policy allows, and records their outcome."""

    def __init__(self, policy: Policy, response_bytes_max: int) -> None:
        self._policy = policy
        self._response_bytes_max = response_bytes_max
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(trust_env=False),
            max_connections=CONNECTIONS_MAX,
            max_keepalive_connections=CONNECTIONS_MAX,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=_GuardedBackend(policy),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request."""
        exchange = EXCHANGE.get()
        try:
            self._policy.check_request(request.url.scheme, request.url.host, request.url.port)
            if exchange is not None:
                # Assumed until the opposite is proven: a cancelled request may have arrived.
                exchange.is_sent = True
            response = await self._send(request)
        except httpx2.TransportError as error:
            if exchange is not None:
                exchange.is_sent = not isinstance(error, NOT_SENT)
                exchange.error = error
                exchange.broken.set()
            raise
        if exchange is not None:
            exchange.status = response.status_code
            exchange.retry_after = response.headers.get("retry-after")
        return response

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
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
        is_stream = headers.get("content-type", "").startswith("text/event-stream")
        # An event stream has no total limit; the SDK limits each event.
        limit = None if is_stream else self._response_bytes_max
        return httpx2.Response(
            response.status,
            headers=headers,
            stream=_BoundedStream(response, limit),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """A response body that raises an error when it exceeds the limit."""

    def __init__(self, response: httpcore2.Response, bytes_max: int | None) -> None:
        self._response = response
        self._bytes_max = bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        with _translated():
            async for piece in self._response.aiter_stream():
                count += len(piece)
                if self._bytes_max is not None and count > self._bytes_max:
                    raise ResponseTooLarge(f"the response exceeds {self._bytes_max} bytes")
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections only to checked addresses."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the base class's signature)
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve the host, check its addresses, and connect to the first one that accepts."""
        addresses = await _resolved(host, port)
        self._policy.check_addresses(host, port, addresses)
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 (the base class's signature)
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Reject: MCP servers are not reached over Unix sockets."""
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


async def _resolved(host: str, port: int) -> tuple[str, ...]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore2.ConnectError(f"{host} cannot be resolved: {error.strerror}") from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


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


def _host_port(host: str, port: int) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return f"{bracketed}:{port}".lower()
