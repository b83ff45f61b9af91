"""Bytes from one connection to another, counted and bounded."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from toolrunner.egress.domain.errors import Reason, Refused
from toolrunner.egress.domain.http_heads import END, Body

PIECE_BYTES: Final = 64 * 1024
CHUNK_LINE_BYTES_MAX: Final = 1024
CHUNK_BYTES_MAX: Final = 1 << 30
LAST_CHUNK: Final = b"0\r\n\r\n"

Pass = Callable[[bytes], bytes]


@dataclass(slots=True)
class Meter:
    """How much went one way.

    Attributes:
        limit: What may.
        count: What did.
    """

    limit: int
    count: int = 0

    def add(self, count: int) -> None:
        """Count more.

        Raises:
            Refused: It is too much.
        """
        self.count += count
        if self.count > self.limit:
            raise Refused(Reason.TOO_LARGE, f"More than {self.limit} bytes went one way.")


@dataclass(frozen=True, slots=True)
class Reading:
    """One side that is read from, with patience that ends."""

    reader: asyncio.StreamReader
    idle_s: float

    async def some(self, count: int = PIECE_BYTES) -> bytes:
        """Return what comes next; empty at the end.

        Raises:
            Refused: Nothing comes for too long.
        """
        try:
            async with asyncio.timeout(self.idle_s):
                return await self.reader.read(count)
        except TimeoutError:
            raise Refused(Reason.TOO_SLOW, "Nothing came for too long.") from None

    async def line(self) -> bytes:
        """Return a line without its end.

        Raises:
            Refused: It does not end, or not in time.
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
    """Return the lines before a body, without the empty one; empty if nothing came at all.

    Raises:
        Refused: They do not end, or not in time.
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
    """Close connections; whoever does not take the rest in time does not get it."""
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
    """Have tasks that end together; the first failure is raised as it is, without a group."""
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
    """Pass on everything until it ends, or as many bytes as there have to be.

    Raises:
        Refused: It is too much, or nothing comes for too long.
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
    """Pass on the body of a request and not a byte of what may follow it.

    Raises:
        Refused: It is cut short, unreadable or too much.
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
    """Pass on a body that comes in chunks, in chunks of our own.

    What looks at it sees the content alone, so that nothing hides where two chunks meet.
    Extensions and trailers stay behind.

    Args:
        source: Where it comes from.
        sink: Where it goes.
        meter: Counts what comes, lengths and extensions included.
        pass_on: Returns what of a piece can be sent so far.
        finish: Returns what was held back until the end.

    Raises:
        Refused: It is cut short, unreadable or too much.
    """
    async for piece in _contents(source, meter):
        await _send_chunk(sink, pass_on(piece) if pass_on is not None else piece)
    await _send_chunk(sink, finish())
    sink.write(LAST_CHUNK)
    await sink.drain()


async def _send_chunk(sink: asyncio.StreamWriter, content: bytes) -> None:
    # An empty one would be the last.
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
    """Yield what is in chunks."""
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
