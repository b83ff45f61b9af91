"""One connection: a request goes out, and the bytes that come back are given on as they arrive.

No task stands between the socket and whoever wants the bytes: a model that sends a word every few
milliseconds to thousands of chats makes that wake-up the dearest part of reading it.
"""

import asyncio
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httptools

from chatd.providers.http.errors import AnswerMalformed, ConnectionCut

HEAD_BYTES_MAX = 64 * 1024
# What is written at once; other chats get their turn between two pieces.
PIECE_BYTES = 256 * 1024
INFLATED_BYTES = 1024 * 1024

# Takes the next bytes of a body; returns whether it has enough. It must not wait.
TakeBytes = Callable[[bytes], bool]


@dataclass(slots=True)
class Head:
    """The beginning of an answer; names of headers are lower case."""

    status: int = 0
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def has_length(self) -> bool:
        """Return whether the answer says where it ends, other than by closing."""
        is_chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        return is_chunked or "content-length" in self.headers


class Connection(asyncio.Protocol):
    """A connection that stands; one exchange at a time.

    Attributes:
        is_open: Whether bytes can still be sent and received.
        is_used: Whether an exchange was begun before.
    """

    def __init__(self, on_lost: Callable[["Connection"], None]) -> None:
        self.is_open = False
        self.is_used = False
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._head = Head()
        self._head_bytes = 0
        self._field_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._is_paused = False
        self._is_head_complete = False
        self._is_ended = True
        self._failure: Exception | None = None
        self._take: TakeBytes | None = None
        self._arrived: list[bytes] = []
        self._held: list[bytes] = []
        self._inflate: Callable[[bytes], None] | None = None

    async def ask(self, head: bytes, body: bytes) -> Head:
        """Send a request and return the head of its answer.

        Raises:
            ConnectionCut: the other side went away.
            AnswerMalformed: what came back is no HTTP.
        """
        self.is_used = True
        self._parser = httptools.HttpResponseParser(self)
        self._head, self._head_bytes, self._field_bytes = Head(), 0, 0
        self._is_head_complete = self._is_ended = False
        self._inflate = None
        await self._write(head, body)
        while not self._is_head_complete:
            await self._something()
        self._raise_failure()
        return self._head

    async def pour(self, take: TakeBytes) -> bool:
        """Give the bytes of the body to `take`, until it has enough or the body ended.

        What `take` raises ends the exchange and comes out here. Returns whether the body ended.

        Raises:
            ConnectionCut: the other side went away before the end.
            AnswerMalformed: what came back is no HTTP.
        """
        held, self._held = self._held, []
        for place, piece in enumerate(held):
            if take(piece):
                self._held = held[place + 1 :]
                return self._is_ended and not self._held
        self._take = take
        try:
            while self._is_wanted:
                await self._something()
        finally:
            self._take = None
        self._raise_failure()
        return self._is_ended

    def leave(self, patience_s: float, give_back: Callable[["Connection"], None]) -> None:
        """End the exchange; if its body ends soon the connection is given back, else closed."""
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

        self._held.clear()
        self._take = _dropped
        self._waiter = asyncio.get_running_loop().create_future()
        self._waiter.add_done_callback(ended)

    def close(self) -> None:
        """Close the connection; what was not sent is not sent."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Learn that the connection stands."""
        transport.set_write_buffer_limits(high=PIECE_BYTES)
        self._transport = transport
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Take what arrived apart."""
        if not self._is_head_complete:
            self._head_bytes += len(data)
        if self._is_ended:
            self.close()  # Nobody asked for anything.
            return
        failure: Exception | None = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            failure = AnswerMalformed(str(error) or "the answer is no HTTP")
        self._give_arrived()
        if failure is not None:
            self._fail(failure)
        elif not self._is_head_complete and self._head_bytes > HEAD_BYTES_MAX:
            self._fail(_head_too_large())

    def eof_received(self) -> None:
        """Let the transport close itself."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Learn that the connection is gone, which may be how a body ends."""
        self.is_open = False
        self._transport = None
        self._resume()
        if not self._is_ended:
            if exc is None and self._is_head_complete and not self._head.has_length:
                self._is_ended = True
                self._wake()
            else:
                self._fail(ConnectionCut(exc))
        self._on_lost(self)

    def pause_writing(self) -> None:
        """Learn that the other side reads too slowly."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Learn that more can be sent."""
        self._resume()

    def on_message_begin(self) -> None:
        """Learn of an answer, which had better be one to something that was asked."""
        if self._is_ended:
            self.is_open = False

    def on_status(self, status: bytes) -> None:
        """Take the reason that stands beside the status."""
        self._head.reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header; of several with a name the values are joined, as they may be."""
        self._field_bytes += len(name) + len(value)
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
        known = self._head.headers.get(key)
        self._head.headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """Learn that the head is complete, if it is that of the answer and no interim one."""
        status = self._parser.get_status_code()
        if status < 200:
            return
        if self._field_bytes > HEAD_BYTES_MAX:
            self._fail(_head_too_large())
            return
        self._head.status = status
        self._is_head_complete = True
        self._resume()  # Whoever is still sending is answered already.
        encoding = self._head.headers.get("content-encoding", "identity").lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._inflate = _inflating(self._body)
        elif encoding != "identity":
            self._fail(AnswerMalformed("the answer is compressed although nobody asked for that"))
        self._wake()

    def on_body(self, body: bytes) -> None:
        """Note what arrived: chunks that came together are given on together."""
        self._arrived.append(body)

    def on_message_complete(self) -> None:
        """Learn that the answer is complete."""
        if not self._is_head_complete:
            self._head = Head()  # An interim answer: the real one follows.
            return
        self._give_arrived()
        self._is_ended = True
        if not self._parser.should_keep_alive():
            self.is_open = False
        self._wake()

    async def _write(self, head: bytes, body: bytes) -> None:
        """Send a request, a large one in pieces; an answer that comes before its end stops it."""
        if len(body) <= PIECE_BYTES:
            self._send(head + body)
            return
        self._send(head)
        for place in range(0, len(body), PIECE_BYTES):
            if self._is_paused:
                self._writable = asyncio.get_running_loop().create_future()
                await self._writable
            if self._is_head_complete:
                self.is_open = False  # Of no use to others: half a request is on its way.
                return
            self._send(body[place : place + PIECE_BYTES])

    def _send(self, data: bytes) -> None:
        self._raise_failure()
        if self._transport is None:
            raise ConnectionCut
        self._transport.write(data)

    def _give_arrived(self) -> None:
        arrived = self._arrived
        if not arrived:
            return
        piece = arrived[0] if len(arrived) == 1 else b"".join(arrived)
        arrived.clear()
        try:
            if self._inflate is None:
                self._body(piece)
            else:
                self._inflate(piece)
        except zlib.error:
            self._fail(AnswerMalformed("the compressed answer is damaged"))
        except Exception as error:
            self._fail(error)  # Whoever pours is told, in its own task.

    def _body(self, piece: bytes) -> None:
        if self._take is None:
            self._held.append(piece)
        elif self._take(piece):
            self._take = None
            self._wake()

    @property
    def _is_wanted(self) -> bool:
        """Return whether somebody waits for more of the body."""
        return self._take is not None and not self._is_ended

    async def _something(self) -> None:
        """Wait for a head, for an end, or until whoever takes the bytes has enough."""
        self._raise_failure()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _resume(self) -> None:
        self._is_paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        self._take = _dropped
        self.close()
        self._resume()
        self._wake()

    def _settle(self, give_back: Callable[["Connection"], None]) -> None:
        self._take = self._waiter = None
        if self.is_open and self._failure is None and self._is_ended:
            give_back(self)
        else:
            self.close()


class Response:
    """An answer whose body is still to come."""

    def __init__(
        self, head: Head, connection: Connection, give_back: Callable[[Connection], None]
    ) -> None:
        self.status = head.status
        self.reason = head.reason
        self.headers: Mapping[str, str] = head.headers
        self._connection = connection
        self._give_back = give_back

    async def pour(self, take: TakeBytes) -> bool:
        """Give the bytes of the body to `take`; see `Connection.pour`."""
        return await self._connection.pour(take)

    def close(self, patience_s: float = 0.0) -> None:
        """Let go of the answer; one that ends within `patience_s` leaves its connection usable."""
        self._connection.leave(patience_s, self._give_back)


def _head_too_large() -> AnswerMalformed:
    return AnswerMalformed(f"the head has more than {HEAD_BYTES_MAX} bytes")


def _dropped(_: bytes) -> bool:
    return False


def _inflating(give: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Return what unpacks the bytes it is given, a bounded piece at a time."""
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)

    def inflate(data: bytes) -> None:
        while data:
            give(inflater.decompress(data, INFLATED_BYTES))
            data = inflater.unconsumed_tail

    return inflate
