"""Bytes that wait for a beat: what a process that is late gives on together, and what it does not.

The bytes of a connection are played by hand, so that every read is one for itself.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from parley.http import AnswerMalformed, ConnectionCut
from parley.http.connection import GULP_BYTES, Connection
from support.net.fake_flush_timer import FakeFlushTimer
from support.net.model_server import LAST_CHUNK, chunk, head

UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport whose other side is the test."""

    def __init__(self) -> None:
        super().__init__()
        self.is_gone = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_gone

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.is_gone = True


class Poured:
    """An exchange whose body is being poured: what was given, and how it ended."""

    def __init__(self, connection: Connection, flush_timer: FakeFlushTimer) -> None:
        self.connection = connection
        self.flush_timer = flush_timer
        self.given: list[bytes] = []
        self.enough = b"enough"
        self.can_wait = True

    def arrives(self, *reads: bytes) -> None:
        for each in reads:
            self.connection.data_received(each)

    def on_bytes(self, piece: bytes) -> bool:
        if b"wrong" in piece:
            raise ArithmeticError
        self.given.append(piece)
        return self.enough in piece

    async def stream_to(self) -> bool | Exception:
        """Return whether the body ended, or why it did not."""
        try:
            return await self.connection.stream_to(self.on_bytes, lambda: self.can_wait)
        except Exception as error:
            return error


@asynccontextmanager
async def pouring(
    opening: bytes = b"", flush_timer: FakeFlushTimer | None = None
) -> AsyncIterator[tuple[Poured, "asyncio.Task[bool | Exception]"]]:
    """Ask over a connection, and pour the body until the context ends."""
    flush_timer = flush_timer or FakeFlushTimer()
    connection = Connection(lambda _: None, flush_timer)
    connection.connection_made(Wire())
    poured = Poured(connection, flush_timer)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(connection.ask(b"", b""))
        await turn()
        poured.arrives(opening or head())
        await asked
        stream_to = tasks.create_task(poured.stream_to())
        await turn()
        yield poured, stream_to
        stream_to.cancel()


async def turn() -> None:
    """Let everybody go on who can."""
    for _ in range(3):
        loop = asyncio.get_running_loop()
        turned = loop.create_future()
        loop.call_soon(turned.set_result, None)
        await turned


async def test_a_process_that_is_late_gives_the_bytes_of_a_beat_on_together() -> None:
    async with pouring() as (poured, _):
        poured.arrives(chunk(b"a"), chunk(b"b"), chunk(b"c"))
        assert (poured.given, poured.flush_timer.awaited) == ([], 1)
        poured.flush_timer.flush()
        assert poured.given == [b"abc"]
        poured.arrives(chunk(b"d"))
        poured.flush_timer.flush()
    assert poured.given == [b"abc", b"d"]


async def test_a_process_that_is_not_late_holds_nothing() -> None:
    flush_timer = FakeFlushTimer()
    flush_timer.is_late = False
    async with pouring(flush_timer=flush_timer) as (poured, _):
        poured.arrives(chunk(b"a"), chunk(b"b"))
        assert (poured.given, flush_timer.awaited) == ([b"a", b"b"], 0)


async def test_what_cannot_wait_does_not_and_takes_along_what_waited() -> None:
    async with pouring() as (poured, _):
        poured.arrives(chunk(b"a"))
        poured.can_wait = False
        poured.arrives(chunk(b"b"), chunk(b"c"))
        assert poured.given == [b"ab", b"c"]
        poured.flush_timer.flush()
    assert poured.given == [b"ab", b"c"]


async def test_much_is_not_held() -> None:
    async with pouring() as (poured, _):
        half = b"x" * (GULP_BYTES // 2)
        poured.arrives(chunk(half))
        assert poured.given == []
        poured.arrives(chunk(half))
    assert poured.given == [half + half]


async def test_the_end_of_a_body_does_not_wait() -> None:
    async with pouring() as (poured, stream_to):
        poured.arrives(chunk(b"a"), chunk(b"b") + LAST_CHUNK)
        assert poured.given == [b"ab"]
        assert await stream_to is True
        kept: list[Connection] = []
        poured.connection.leave(0.0, kept.append)
        poured.flush_timer.flush()
    assert (poured.given, kept) == ([b"ab"], [poured.connection])


async def test_the_end_of_a_body_that_closing_ends_does_not_wait() -> None:
    async with pouring(UNTIL_CLOSED) as (poured, stream_to):
        poured.arrives(b"a", b"b")
        poured.connection.connection_lost(None)
        assert await stream_to is True
    assert poured.given == [b"ab"]


@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["closed", "reset"])
async def test_what_came_before_the_connection_broke_is_given_first(
    error: Exception | None,
) -> None:
    async with pouring() as (poured, stream_to):
        poured.arrives(chunk(b"a"), chunk(b"b"))
        poured.connection.connection_lost(error)
        assert poured.given == [b"ab"]
        assert isinstance(await stream_to, ConnectionCut)


async def test_what_came_before_nonsense_is_given_first() -> None:
    async with pouring() as (poured, stream_to):
        poured.arrives(chunk(b"a"), b"zz\r\n")
        assert poured.given == [b"a"]
        assert isinstance(await stream_to, AnswerMalformed)


async def test_what_came_before_a_damaged_packing_is_given_first() -> None:
    packing = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    packed = packing.compress(b"hello") + packing.flush(zlib.Z_SYNC_FLUSH)
    async with pouring(head(content_encoding="gzip")) as (poured, stream_to):
        poured.arrives(chunk(packed), chunk(b"\xff" * 20))
        assert poured.given == [b"hello"]
        assert isinstance(await stream_to, AnswerMalformed)


async def test_what_whoever_takes_raises_on_a_beat_ends_the_exchange() -> None:
    async with pouring() as (poured, stream_to):
        poured.arrives(chunk(b"a"), chunk(b"wrong"))
        poured.flush_timer.flush()
        assert not poured.connection.is_open
        assert isinstance(await stream_to, ArithmeticError)
    assert poured.given == []


async def test_who_has_enough_on_a_beat_is_done_although_the_body_is_not() -> None:
    async with pouring() as (poured, stream_to):
        poured.arrives(chunk(b"a"), chunk(b"enough"))
        poured.flush_timer.flush()
        assert await stream_to is False
        poured.arrives(chunk(b"b"))
        poured.flush_timer.flush()
        assert poured.given == [b"aenough"]
        poured.connection.leave(0.0, lambda _: None)
    assert not poured.connection.is_open


async def test_a_failure_behind_enough_is_nobodys_concern() -> None:
    async with pouring() as (poured, stream_to):
        poured.arrives(chunk(b"enough"))
        poured.connection.connection_lost(ConnectionResetError())
        assert await stream_to is False
    assert poured.given == [b"enough"]


async def test_who_goes_away_is_given_nothing_more() -> None:
    async with pouring() as (poured, stream_to):
        poured.arrives(chunk(b"a"))
        stream_to.cancel()
        await asyncio.wait((stream_to,))
        poured.connection.leave(0.0, lambda _: None)
        poured.flush_timer.flush()
    assert (poured.given, poured.connection.is_open) == ([], False)


async def test_garbage_behind_the_end_of_what_was_held_costs_the_connection() -> None:
    async with pouring() as (poured, stream_to):
        poured.arrives(chunk(b"a"), LAST_CHUNK + b"!!!")
        assert await stream_to is True
        assert not poured.connection.is_open
    assert poured.given == [b"a"]


async def test_a_beat_that_one_exchange_awaited_may_come_in_the_next() -> None:
    async with pouring() as (poured, stream_to):
        poured.arrives(chunk(b"a"), LAST_CHUNK)
        assert await stream_to is True
        connection, flush_timer = poured.connection, poured.flush_timer
        connection.leave(0.0, lambda _: None)
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(connection.ask(b"", b""))
            await turn()
            connection.data_received(head() + chunk(b"unasked"))
            flush_timer.flush()  # Nobody takes anything yet.
            await asked
            again = tasks.create_task(poured.stream_to())
            await turn()
            connection.data_received(chunk(b"b") + LAST_CHUNK)
            assert await again is True
    assert poured.given == [b"a", b"unasked", b"b"]
