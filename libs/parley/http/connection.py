"""One connection: sends a request and passes the bytes of the answer on as they arrive.

No task runs between the socket and the consumer of the bytes: with a model that sends a word every
few milliseconds to thousands of chats, that wake-up would be the most expensive part of reading. In
a process that is late, the bytes of several reads are passed on together at the next flush, if
`can_wait` of the consumer returns True; the end of a body is never held.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field

import httptools

from parley.http.errors import AnswerMalformed, ConnectionCut
from parley.http.flush_timer import FlushTimer
from parley.http.packing import Unpack, unpacking

HEAD_BYTES_MAX = 64 * 1024
# The size of one write; other connections are served between two pieces.
PIECE_BYTES = 256 * 1024
# After a read of this size the connection is read again only after other callbacks have run; held
# bytes are passed on at this size without waiting for the flush.
GULP_BYTES = 64 * 1024

# Is called with the next bytes of a body; returns whether it needs no more. It must not block.
OnBytes = Callable[[bytes], bool]
# Returns whether the next bytes may be held until the next flush.
CanWait = Callable[[], bool]


@dataclass(slots=True)
class Head:
    """Status and headers of an answer; names of headers are lower case."""

    status: int = 0
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def has_length(self) -> bool:
        """Return whether the answer has a length or is chunked, so that closing does not end it."""
        is_chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        return is_chunked or "content-length" in self.headers


def _cannot_wait() -> bool:
    return False


class Connection(asyncio.Protocol):
    """An open connection; one exchange at a time."""

    def __init__(self, on_lost: Callable[["Connection"], None], flush_timer: FlushTimer) -> None:
        self._flush_timer = flush_timer
        self._is_kept = True  # False once the connection cannot be reused.
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._head = Head()
        self._bare_bytes = 0  # Received since the last bytes of a body.
        self._field_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._unsent = memoryview(b"")
        self._is_paused = False
        self._is_head_complete = False
        self._is_ended = True
        self._failure: Exception | None = None
        self._take: OnBytes | None = None
        self._can_wait: CanWait = _cannot_wait
        self._arrived: list[bytes] = []
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_beat_awaited = False
        self._unpack: Unpack | None = None

    @property
    def is_open(self) -> bool:
        """Return whether another exchange may follow."""
        # A transport may be closing for a while before connection_lost is called.
        transport = self._transport
        return self._is_kept and transport is not None and not transport.is_closing()

    async def ask(self, head: bytes, body: bytes) -> Head:
        """Send a request and return the head of its answer.

        Raises:
            ConnectionCut: the peer closed the connection.
            AnswerMalformed: the answer is not valid HTTP.
        """
        if self._transport is None or not self.is_open:
            raise ConnectionCut
        self._parser = httptools.HttpResponseParser(self)
        self._head, self._bare_bytes, self._field_bytes = Head(), 0, 0
        self._is_head_complete = self._is_ended = False
        self._unpack = None
        if len(body) > PIECE_BYTES:
            self._transport.write(head)
        else:
            body = head + body
        self._unsent = memoryview(body)
        self._send()
        while not self._is_head_complete:
            await self._something()
        return self._head

    async def stream_to(self, on_bytes: OnBytes, can_wait: CanWait) -> bool:
        """Call `on_bytes` with the bytes of the body, until it returns True or the body ends.

        While the process is late, bytes for which `can_wait` returns True are held until the next
        flush. An error raised by `on_bytes` ends the exchange and is raised here. Bytes that
        arrived before an error are passed on before it is raised; after `on_bytes` returned True
        it is not called again, and no error is raised. Returns whether the body ended.

        Raises:
            ConnectionCut: the peer closed the connection before the end.
            AnswerMalformed: the answer is not valid HTTP.
        """
        # Callbacks run in the context in which the connection was made, which is another chat's.
        context = copy_context()
        self._take = lambda piece: context.run(on_bytes, piece)
        self._can_wait = can_wait
        try:
            self._pour_held()
            while self._wants_more and not self._is_ended:
                await self._something()
            if self._wants_more:
                self._raise_failure()
        finally:
            self._take = None
            self._can_wait = _cannot_wait
        return self._is_ended and not self._held

    def leave(self, patience_s: float, give_back: Callable[["Connection"], None]) -> None:
        """End the exchange; give the connection back if the body ends soon, else close it."""
        if self._is_ended:
            self._settle(give_back)
            return
        if self._transport is None or patience_s <= 0:
            self.close()
            return
        timer = asyncio.get_running_loop().call_later(patience_s, self.close)

        def ended(_: asyncio.Future[None]) -> None:
            timer.cancel()
            self._settle(give_back)

        self._drop_held()
        self._take = _dropped
        self._waiter = asyncio.get_running_loop().create_future()
        self._waiter.add_done_callback(ended)

    def close(self) -> None:
        """Close the connection; unsent bytes are dropped."""
        self._is_kept = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Store the transport of the open connection."""
        transport.set_write_buffer_limits(high=PIECE_BYTES)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and pass the body on."""
        if self._is_ended or self._failure is not None:
            self.close()  # No request is waiting for an answer.
            return
        self._bare_bytes += len(data)
        failure: AnswerMalformed | None = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            failure = AnswerMalformed("the answer goes on in another protocol")
        except httptools.HttpParserError as error:
            failure = AnswerMalformed(str(error) or "the answer is no HTTP")
        self._give_arrived()
        if failure is None and self._bare_bytes > HEAD_BYTES_MAX:
            failure = _head_too_large()
        if self._is_ended:
            self._is_kept = self._is_kept and failure is None  # More bytes are unsolicited.
        elif failure is not None:
            self._give_held()
            self._fail(failure)
        if len(data) >= GULP_BYTES:
            self._rest()

    def eof_received(self) -> None:
        """Let the transport close itself."""
        self._is_kept = False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange: with the end of a body without a length, or with an error."""
        self._transport = None
        if not self._is_ended:
            self._give_held()
            if exc is None and self._is_head_complete and not self._head.has_length:
                self._is_ended = True
                self._wake()
            else:
                self._fail(ConnectionCut(exc))
        self._on_lost(self)

    def pause_writing(self) -> None:
        """Stop sending: the peer reads too slowly."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Continue to send."""
        self._is_paused = False
        self._send()

    def on_message_begin(self) -> None:
        """Mark the connection as not reusable if an answer begins that no request waits for."""
        if self._is_ended:
            self._is_kept = False

    def on_status(self, status: bytes) -> None:
        """Append to the reason phrase."""
        if not self._is_head_complete:
            self._head.reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; the values of repeated headers are joined with commas."""
        if self._is_head_complete:
            return  # Trailers are ignored.
        self._field_bytes += len(name) + len(value)
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
        known = self._head.headers.get(key)
        self._head.headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """Complete the head, unless it is that of an interim (1xx) answer."""
        status = self._parser.get_status_code()
        if status // 100 == 1 or self._is_head_complete:
            return
        if self._field_bytes > HEAD_BYTES_MAX:
            self._fail(_head_too_large())
            return
        self._head.status = status
        self._is_head_complete = True
        if self._unsent and not 200 <= status < 300:
            self._unsent = memoryview(b"")  # The request was refused: the rest is not sent.
            self._is_kept = False
        try:
            self._unpack = unpacking(self._head.headers.get("content-encoding", ""))
        except AnswerMalformed as error:
            self._fail(error)
        self._wake()

    def on_body(self, body: bytes) -> None:
        """Store received bytes: chunks of one read are passed on together."""
        if not self._is_ended:
            self._bare_bytes = 0
            self._arrived.append(body)

    def on_message_complete(self) -> None:
        """End the exchange at the end of the answer."""
        if not self._is_head_complete:
            self._head = Head()  # An interim answer: the final one follows.
            return
        self._give_arrived()
        self._give_held()
        self._is_ended = True
        if self._unsent or not self._parser.should_keep_alive():
            self._is_kept = False
        self._wake()

    def _rest(self) -> None:
        """Pause reading for one turn: a loop may read from one connection repeatedly."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return

        def read_on() -> None:
            if not transport.is_closing():
                transport.resume_reading()

        transport.pause_reading()
        asyncio.get_running_loop().call_soon(read_on)

    def _send(self) -> None:
        """Send while the peer reads; its answer may arrive before all of the request was sent."""
        transport = self._transport
        while self._unsent and not self._is_paused and transport and not transport.is_closing():
            piece, self._unsent = self._unsent[:PIECE_BYTES], self._unsent[PIECE_BYTES:]
            transport.write(piece)

    def _give_arrived(self) -> None:
        """Pass received bytes on, or hold them until the next flush."""
        arrived = self._arrived
        if not arrived:
            return
        piece = arrived[0] if len(arrived) == 1 else b"".join(arrived)
        arrived.clear()
        if self._failure is not None:
            return
        if self._unpack is not None:
            try:
                piece = self._unpack(piece)
            except AnswerMalformed as error:
                self._give_held()
                self._fail(error)
                return
        self._held.append(piece)
        if self._flush_timer.is_late and self._can_wait():
            self._await_beat(len(piece))
        else:
            self._give_held()

    def _await_beat(self, more_bytes: int) -> None:
        self._held_bytes += more_bytes
        if self._held_bytes >= GULP_BYTES:
            self._give_held()
        elif not self._is_beat_awaited:
            self._is_beat_awaited = True
            self._flush_timer.at_next_flush(self._on_beat)

    def _on_beat(self) -> None:
        self._is_beat_awaited = False
        self._give_held()

    def _give_held(self) -> None:
        try:
            self._pour_held()
        except Exception as error:
            self._fail(error)  # `stream_to` raises it in its own task.

    def _pour_held(self) -> None:
        held = self._held
        if not held or self._take is None:
            return
        piece = held[0] if len(held) == 1 else b"".join(held)
        self._drop_held()
        if self._take(piece):
            self._take = None
            self._wake()

    def _drop_held(self) -> None:
        self._held.clear()
        self._held_bytes = 0

    @property
    def _wants_more(self) -> bool:
        return self._take is not None

    async def _something(self) -> None:
        """Wait for the head, for the end, or until the consumer needs no more bytes."""
        self._raise_failure()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        self.close()
        self._wake()

    def _settle(self, give_back: Callable[["Connection"], None]) -> None:
        self._take = self._waiter = None
        self._drop_held()
        if self.is_open and self._failure is None and self._is_ended:
            give_back(self)
        else:
            self.close()


class Response:
    """An answer whose body is not read yet."""

    def __init__(
        self, head: Head, connection: Connection, give_back: Callable[[Connection], None]
    ) -> None:
        self.status = head.status
        self.reason = head.reason
        self.headers: Mapping[str, str] = head.headers
        self._connection = connection
        self._give_back = give_back

    async def stream_to(self, on_bytes: OnBytes, can_wait: CanWait = _cannot_wait) -> bool:
        """Call `on_bytes` with the bytes of the body; see `Connection.stream_to`."""
        return await self._connection.stream_to(on_bytes, can_wait)

    async def read(self, bytes_max: int) -> bytes:
        """Return the body, or its first `bytes_max` bytes; raises the errors of `stream_to`."""
        body = bytearray()

        def on_bytes(piece: bytes) -> bool:
            body.extend(piece)
            return len(body) >= bytes_max

        await self.stream_to(on_bytes)
        return bytes(body[:bytes_max])

    def close(self, patience_s: float = 0.0) -> None:
        """Release the answer; if it ends within `patience_s` its connection is kept for reuse."""
        self._connection.leave(patience_s, self._give_back)


def _head_too_large() -> AnswerMalformed:
    return AnswerMalformed(f"the head has more than {HEAD_BYTES_MAX} bytes")


def _dropped(_: bytes) -> bool:
    return False
