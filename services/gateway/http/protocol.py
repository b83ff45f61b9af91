"""The HTTP protocol of one connection, with limits on unauthenticated input.

uvicorn buffers a request head until it is complete, without a limit of time or size. Here the head
has a size limit and a time limit, and the number of connections is limited. Input that is not HTTP
is answered with a problem document too, though a short one: there is no request to describe.
"""

import asyncio
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, assert_never

import msgspec
from httptools import HttpParserError, HttpParserUpgrade
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from gateway.http.limits.client_keys import ClientKeys
from gateway.http.limits.connections import ConnectionRefusal, OpenConnections
from gateway.http.limits.refused_input import RefusedInput
from gateway.http.limits.start_queue import StartQueue
from gateway.http.problems.errors import PROBLEM_MEDIA_TYPE, type_and_title
from gateway.http.request_head import head_error
from parley.contract.errors import ErrorSpec, error_spec

HEAD_BYTES_MAX = 64 * 1024
HEAD_S_MAX = 10.0
# With a heartbeat every 15 s, a stream whose client vanished is released within 45 s.
UNACKNOWLEDGED_MS_MAX = 25_000
# How long a refused connection may take to send a request and read the response.
REFUSED_S_MAX = 2.0
# How much of a body is still taken after its request was answered, so that the answer is read.
UNREAD_BYTES_MAX: Final = 4 * 1024 * 1024
RETRY_AFTER_S: Final = 2
# The parser does not tell how far it is, so input is counted in pieces of this size.
PIECE_BYTES: Final = 1024
# More than the size of a chunk and its line ends have; what is beyond that counts as head.
CHUNK_FRAME_BYTES: Final = 24
NOT_HTTP: Final = "This is not a request of HTTP/1.1 with a method that is known here."
NOT_CHUNKS: Final = "The body is not in chunks, as its Transfer-Encoding says."
#: The scope key of the client's presence.
PRESENCE: Final = "parley.presence"
#: The scope key of the callback for the authentication of the request.
AUTHENTICATED: Final = "parley.authenticated"
#: The scope key of the callback for the admission of the request.
ADMITTED: Final = "parley.admitted"
#: The scope key of how long the request waited before it was started.
WAITED_S: Final = "parley.waited_s"


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """Size and time limits of a request head; trailers and extensions of chunks are part of it."""

    bytes_max: int = HEAD_BYTES_MAX
    s_max: float = HEAD_S_MAX


class HeadTooLarge(Exception):
    """The request head exceeds the size limit."""


class RequestHeadInvalid(Exception):
    """The request head is invalid."""


class _CountedWebSocket(WSProtocol):
    """uvicorn's WebSocket protocol, with a callback for the loss of the connection."""

    def __init__(self, *, lost: Callable[[], None], **given: Any) -> None:
        super().__init__(**given)
        self._lost = lost

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._lost()
        super().connection_lost(exc)


class _ReceivedRequest:
    """A request whose head was received."""

    __slots__ = ("_app", "_connection", "_key", "_received_s", "_start")

    def __init__(
        self,
        connection: "BoundedProtocol",
        key: bytes,
        app: ASGIApp,
        start: Callable[[ASGIApp], None],
    ) -> None:
        self._connection = connection
        self._key = key
        self._app = app
        self._start = start
        self._received_s = connection.loop.time()

    def when_gone(self, tell: Callable[[], object]) -> Callable[[], object]:
        """Call `tell` once the client disconnects, possibly at once; return how to cancel that."""
        return self._connection.when_gone(tell)

    def start(self, admitted: Callable[[], None]) -> None:
        """Start it."""
        waited_s = self._connection.loop.time() - self._received_s

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            async def answer(message: Message) -> None:
                # An error before admission is an end, too; its client may read it slowly.
                admitted()
                await send(message)

            def authenticated() -> None:
                client_keys = self._connection.client_keys
                client_keys.remember(scope)
                if self._key != client_keys.of(scope):
                    # Waiting for other requests of its user, it would delay all of its address.
                    admitted()

            scope[AUTHENTICATED] = authenticated
            scope[ADMITTED], scope[WAITED_S] = admitted, waited_s
            try:
                await self._app(scope, receive, answer)
            finally:
                admitted()
                # It holds the scope, which would otherwise wait for the garbage collector.
                del scope[AUTHENTICATED]

        self._start(app)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits: rejects large heads and closes connections with slow ones."""

    def __init__(
        self,
        *,
        public_url: str,
        limits: HeadLimits,
        open_connections: OpenConnections,
        start_queue: StartQueue,
        client_keys: ClientKeys,
        refused_input: RefusedInput,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self._public_url = public_url
        self._limits = limits
        self._open_connections = open_connections
        self._start_queue = start_queue
        self.client_keys = client_keys
        self._refused_input = refused_input
        self._answered: RequestResponseCycle | None = None
        self._refused: ConnectionRefusal | None = None
        self._refused_unheard = True
        self.is_gone = False
        self._when_gone: dict[Callable[[], object], None] = {}
        self._held_bytes = 0
        self._piece_bytes = 0
        self._field_bytes = 0
        self._unread_bytes = 0
        self._fault = ""
        self._is_head_awaited = True
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the first head."""
        super().connection_made(transport)
        _set_tcp_user_timeout(transport)
        peer = "" if self.client is None else self.client[0]
        refused = self._open_connections.enter(self, peer)
        if refused is None:
            self._await_head()
        elif self._open_connections.may_linger():
            # If it were closed at once, the request in transit would cause a reset.
            self._refused = refused
            self._head_timer = self.loop.call_later(REFUSED_S_MAX, transport.abort)
        else:
            self._tell(refused)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._stop_waiting()
        self._open_connections.leave(self)
        if self._refused is not None:
            self._open_connections.lingered()
        self.is_gone = True
        for tell in list(self._when_gone):
            tell()
        if self._answered is not None:
            # uvicorn tells only the newest request, which may wait behind this one.
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def when_gone(self, tell: Callable[[], object]) -> Callable[[], object]:
        """Call `tell` once the client disconnects, possibly at once; return how to cancel that."""
        if self.is_gone:
            tell()
        else:
            self._when_gone[tell] = None
        return lambda: self._when_gone.pop(tell, None)

    def close_idle(self) -> None:
        """Close the connection, which is idle."""
        self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        """Switch to a WebSocket, which counts as a connection until it is lost."""
        leave: Any = partial(_CountedWebSocket, lost=partial(self._open_connections.leave, self))
        self.ws_protocol_class = leave
        super().handle_websocket_upgrade()

    def on_response_complete(self) -> None:
        """Mark the connection as idle, unless another request follows."""
        super().on_response_complete()
        if not self._is_answering():
            self._open_connections.idle(self)

    def data_received(self, data: bytes) -> None:
        """Parse the data, and reject a head that exceeds the limit."""
        if self._refused is not None:
            if self._refused_unheard:
                self._refused_unheard = False
                self._tell(self._refused)
                self.transport.write_eof()
            return
        if self._is_head_awaited:
            self._await_head()
        self._unset_keepalive_if_required()
        for start in range(0, len(data), PIECE_BYTES):
            if not self._parse(data[start : start + PIECE_BYTES]):
                break

    def on_message_begin(self) -> None:
        """Reset the counts of bytes."""
        super().on_message_begin()
        self._field_bytes = self._unread_bytes = 0
        self._open_connections.busy(self)
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope[PRESENCE] = self

    def on_url(self, url: bytes) -> None:
        """Count a piece of the request target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header or a trailer."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request, unless its head is invalid."""
        version: str = self.parser.get_http_version()
        self._fault = head_error(version, self.url, self.headers)
        if self._fault:
            # The parser stops at this error and calls `send_400_response`.
            raise RequestHeadInvalid
        self._is_head_awaited = False
        self._stop_waiting()
        self._forget_held()
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Do not count the frame of a chunk as head."""
        self._piece_bytes -= CHUNK_FRAME_BYTES

    def on_body(self, body: bytes) -> None:
        """Handle a piece of the body; one that goes on after its answer ends the connection."""
        self._piece_bytes -= len(body)
        if not self._is_answering():
            self._unread_bytes += len(body)
            if self._unread_bytes > UNREAD_BYTES_MAX:
                self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Start waiting for the next request."""
        self._is_head_awaited = True
        self._forget_held()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Reject input that could not be parsed."""
        if self._field_bytes > self._limits.bytes_max:
            self._refuse("REQUEST_HEADER_FIELDS_TOO_LARGE", _too_large(self._limits))
        elif self._is_head_awaited:
            self._refuse("BAD_REQUEST", self._fault or NOT_HTTP)
        else:
            # Of bodies, only chunks have a syntax.
            self._refuse("INVALID_CHUNKS", NOT_CHUNKS)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start a request, or let it wait for others of its client; drop it if that has left."""
        if _has_hung_up(self.transport):
            # Its end is read in the next iteration of the event loop, when the request would run.
            self.transport.close()
            return
        self._answered = cycle
        start: Callable[[Any], None] = partial(super()._start_asgi_task, cycle)
        key = self.client_keys.of(cycle.scope)
        self._start_queue.submit(key, _ReceivedRequest(self, key, app, start))

    def _parse(self, piece: bytes) -> bool:
        """Parse a piece of the input; return whether to go on with the next one."""
        self._piece_bytes = len(piece)
        try:
            self.parser.feed_data(piece)
        except HttpParserUpgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            # Other protocols are not offered: the request is answered as if it named none.
            return False
        except HttpParserError:
            self.send_400_response("")
            return False
        self._held_bytes = max(0, self._held_bytes + self._piece_bytes)
        if self._held_bytes > self._limits.bytes_max and not self.transport.is_closing():
            self._refuse("REQUEST_HEADER_FIELDS_TOO_LARGE", _too_large(self._limits))
        return not self.transport.is_closing()

    def _count(self, field_bytes: int) -> None:
        self._field_bytes += field_bytes
        if self._field_bytes > self._limits.bytes_max:
            # The parser stops at this error and calls `send_400_response`.
            raise HeadTooLarge

    def _forget_held(self) -> None:
        self._held_bytes = self._piece_bytes = 0

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._limits.s_max, self._leave)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _leave(self) -> None:
        self._head_timer = None
        # Invalid input after a request that is still being answered does not end that response.
        if not self._is_answering():
            self.transport.close()

    def _is_answering(self) -> bool:
        # uvicorn declares it as never None.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _tell(self, refused: ConnectionRefusal) -> None:
        match refused:
            case ConnectionRefusal.FULL:
                code = "SERVER_BUSY"
            case ConnectionRefusal.ADDRESS_FULL:
                code = "TOO_MANY_CONNECTIONS"
            case _:
                assert_never(refused)
        self._write_problem(code, refused.value)

    def _refuse(self, code: str, detail: str) -> None:
        self._refused_input.note(code, detail)
        is_head = self._is_head_awaited
        if not self._is_answering() if is_head else self._is_response_taken():
            self._write_problem(code, detail)
        self.transport.close()

    def _is_response_taken(self) -> bool:
        """Take the response to the current request from the application, unless it has begun.

        To the application the client is gone.
        """
        is_queued = bool(self.pipeline)  # Then another request is being answered.
        if is_queued or not self._is_answering() or self.cycle.response_started:
            return False
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        return True

    def _write_problem(self, code: str, detail: str) -> None:
        kind = type_and_title(code, self._public_url)
        self.transport.write(_problem(kind, error_spec(code), detail))


def _set_tcp_user_timeout(transport: asyncio.Transport) -> None:
    """Let the kernel drop a connection whose peer acknowledges nothing, or has a full window."""
    connected = transport.get_extra_info("socket")
    if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS_MAX)


def _has_hung_up(transport: asyncio.Transport) -> bool:
    """Return whether the peer has closed the connection, or its sending side, behind its data."""
    connected = transport.get_extra_info("socket")
    if connected is None:
        return False
    poll = select.poll()
    poll.register(connected.fileno(), select.POLLRDHUP)
    return bool(poll.poll(0))


def _too_large(limits: HeadLimits) -> str:
    return f"The head of a request may have {limits.bytes_max} bytes; send less."


def _problem(kind: dict[str, object], spec: ErrorSpec, detail: str) -> bytes:
    status = HTTPStatus(spec.http_status)
    document: dict[str, object] = {
        **kind,
        "status": status.value,
        "detail": detail,
        "code": spec.reason,
        "retryable": spec.is_retryable,
    }
    if spec.is_retryable:
        document["retry_after_ms"] = RETRY_AFTER_S * 1000
    retry_after = f"retry-after: {RETRY_AFTER_S}\r\n" if spec.is_retryable else ""
    body = msgspec.json.encode(document)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"content-type: {PROBLEM_MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
        f"{retry_after}cache-control: no-store\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
