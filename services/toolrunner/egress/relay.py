"""Copying of bytes between connections, with counters and limits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from toolrunner.egress.dialer import Connection
from toolrunner.egress.domain.client_hello import (
    ALERT,
    HelloUnreadable,
    handshake_of,
    read_hello,
)
from toolrunner.egress.domain.errors import Reason, Refused
from toolrunner.egress.domain.hosts import HostPort
from toolrunner.egress.domain.http_heads import END, Body
from toolrunner.egress.domain.policy import Limits

PIECE_BYTES: Final = 64 * 1024
CHUNK_LINE_BYTES_MAX: Final = 1024
CHUNK_BYTES_MAX: Final = 1 << 30
LAST_CHUNK: Final = b"0\r\n\r\n"

Pass = Callable[[bytes], bytes]


@dataclass(slots=True)
class Meter:
    """The bytes in one direction.

    Attributes:
        limit: The maximum.
        count: The bytes so far.
    """

    limit: int
    count: int = 0

    def add(self, count: int) -> None:
        """Add to the count.

        Raises:
            Refused: The limit is exceeded.
        """
        self.count += count
        if self.count > self.limit:
            raise Refused(Reason.TOO_LARGE, f"More than {self.limit} bytes went one way.")


@dataclass(frozen=True, slots=True)
class Reading:
    """A reader with an idle timeout."""

    reader: asyncio.StreamReader
    idle_s: float

    async def some(self, count: int = PIECE_BYTES) -> bytes:
        """Return the next bytes; empty at the end.

        Raises:
            Refused: The idle timeout expired.
        """
        try:
            async with asyncio.timeout(self.idle_s):
                return await self.reader.read(count)
        except TimeoutError:
            raise Refused(Reason.TOO_SLOW, "Nothing came for too long.") from None

    async def line(self) -> bytes:
        """Return a line without its end.

        Raises:
            Refused: It is incomplete, or the idle timeout expired.
        """
        try:
            async with asyncio.timeout(self.idle_s):
                line = await self.reader.readuntil(b"\r\n")
        except TimeoutError:
            raise Refused(Reason.TOO_SLOW, "Nothing came for too long.") from None
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            line = b""
        if not 2 < len(line) <= CHUNK_LINE_BYTES_MAX:
            raise Refused(Reason.MALFORMED, "A chunk has no length.")
        return line[:-2]


async def head_of(reader: asyncio.StreamReader, limit_s: float) -> bytes:
    """Return the head of a message, without the empty line; empty if nothing was received.

    Raises:
        Refused: It is incomplete, or the timeout expired.
    """
    try:
        async with asyncio.timeout(limit_s):
            return (await reader.readuntil(END))[: -len(END)]
    except TimeoutError:
        raise Refused(Reason.TOO_SLOW, "The head of the message did not come in time.") from None
    except asyncio.LimitOverrunError:
        raise Refused(Reason.TOO_LARGE, "The head of the message is too long.") from None
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise Refused(Reason.MALFORMED, "The head of the message is cut short.") from None
        return b""


async def hang_up(*writers: asyncio.StreamWriter, limit_s: float) -> None:
    """Close connections; one that does not flush in time is aborted."""
    for writer in writers:
        writer.close()
    for writer in writers:
        try:
            async with asyncio.timeout(limit_s):
                await writer.wait_closed()
        except (OSError, TimeoutError):
            writer.transport.abort()


@asynccontextmanager
async def joint() -> AsyncIterator[asyncio.TaskGroup]:
    """Run tasks as a group; the first failure is raised itself, not as an exception group."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def pump(
    source: Reading,
    sink: asyncio.StreamWriter,
    meter: Meter,
    *,
    length: int | None = None,
    pass_on: Pass | None = None,
) -> None:
    """Copy until EOF, or `length` bytes.

    Raises:
        Refused: The byte limit is exceeded, or the idle timeout expired.
    """
    left = length
    while left != 0:
        piece = await source.some(PIECE_BYTES if left is None else min(left, PIECE_BYTES))
        if not piece:
            return
        meter.add(len(piece))
        left = None if left is None else left - len(piece)
        sink.write(pass_on(piece) if pass_on is not None else piece)
        await sink.drain()


async def pump_body(source: Reading, sink: asyncio.StreamWriter, body: Body, meter: Meter) -> None:
    """Copy the body of a request and no byte after it.

    Raises:
        Refused: It is incomplete, malformed or too large.
    """
    if body.length is None:
        await pump_chunks(source, sink, meter)
        return
    async for piece in _counted(source, body.length):
        meter.add(len(piece))
        sink.write(piece)
        await sink.drain()


async def pump_chunks(
    source: Reading,
    sink: asyncio.StreamWriter,
    meter: Meter,
    *,
    pass_on: Pass | None = None,
    finish: Callable[[], bytes] = bytes,
) -> None:
    """Copy a chunked body, with new chunks.

    `pass_on` gets the content only, so that no match is missed across two chunks. Extensions and
    trailers are dropped.

    Args:
        source: The reader.
        sink: The writer.
        meter: Counts the input, including chunk lengths and extensions.
        pass_on: Returns the bytes that can be sent now.
        finish: Returns the bytes that were held back until the end.

    Raises:
        Refused: It is incomplete, malformed or too large.
    """
    async for piece in _contents(source, meter):
        await _send_chunk(sink, pass_on(piece) if pass_on is not None else piece)
    await _send_chunk(sink, finish())
    sink.write(LAST_CHUNK)
    await sink.drain()


async def _send_chunk(sink: asyncio.StreamWriter, content: bytes) -> None:
    # An empty chunk would be the last.
    if content:
        sink.write(b"%x\r\n%b\r\n" % (len(content), content))
        await sink.drain()


async def _counted(source: Reading, length: int) -> AsyncIterator[bytes]:
    while length:
        piece = await source.some(min(length, PIECE_BYTES))
        if not piece:
            raise Refused(Reason.MALFORMED, "The body is cut short.")
        length -= len(piece)
        yield piece


async def _contents(source: Reading, meter: Meter) -> AsyncIterator[bytes]:
    """Yield the content of chunks."""
    while True:
        line = await source.line()
        length = _chunk_length(line)
        meter.add(len(line) + length)
        if not length:
            return
        async for piece in _counted(source, length):
            yield piece
        if b"".join([piece async for piece in _counted(source, 2)]) != b"\r\n":
            raise Refused(Reason.MALFORMED, "A chunk does not end where it says.")


def _chunk_length(line: bytes) -> int:
    digits = line.partition(b";")[0]
    if not 0 < len(digits) <= 8 or not all(each in b"0123456789abcdefABCDEF" for each in digits):
        raise Refused(Reason.MALFORMED, "A chunk has no length.")
    length = int(digits, 16)
    if length > CHUNK_BYTES_MAX:
        raise Refused(Reason.TOO_LARGE, "A chunk is too long.")
    return length


async def greeting_of(reader: asyncio.StreamReader, host_port: HostPort, limits: Limits) -> bytes:
    """Return the first bytes of a tunnel, once they are a ClientHello for its host.

    Raises:
        Refused: They are not TLS, or for another host.
    """
    records = b""
    try:
        async with asyncio.timeout(limits.head_s):
            while (message := handshake_of(records)) is None:
                piece = await reader.read(limits.head_bytes)
                records += piece
                if not piece or len(records) > limits.head_bytes:
                    raise HelloUnreadable("it is cut short, or too long")
        hello = read_hello(message)
    except TimeoutError:
        raise Refused(Reason.TOO_SLOW, "No TLS came through the tunnel in time.") from None
    except HelloUnreadable as error:
        raise Refused(Reason.MALFORMED, f"What came through the tunnel: {error}.") from None
    if hello.is_hiding:
        raise Refused(Reason.MISMATCH, "The TLS hides its host (Encrypted Client Hello).")
    # An address is never sent as a server name.
    if hello.server_name.lower() != ("" if host_port.is_address else host_port.host):
        raise Refused(
            Reason.MISMATCH, f"The tunnel is for {host_port}, and its TLS is for another."
        )
    return records


async def join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connection: Connection,
    *,
    sent: Meter,
    received: Meter,
    idle_s: float,
) -> None:
    """Copy both directions until both have ended.

    Raises:
        Refused: The byte limit is exceeded, or the idle timeout expired.
        OSError: A connection is lost.
    """
    async with joint() as ways:
        ways.create_task(_one_way(Reading(reader, idle_s), connection.writer, sent))
        ways.create_task(_one_way(Reading(connection.reader, idle_s), writer, received))


def alert(writer: asyncio.StreamWriter) -> None:
    """Refuse with a TLS alert, since the tunnel is open already."""
    writer.write(ALERT)


async def _one_way(source: Reading, sink: asyncio.StreamWriter, meter: Meter) -> None:
    await pump(source, sink, meter)
    if sink.can_write_eof():
        sink.write_eof()
