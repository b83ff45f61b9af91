"""HTTP/1.1 as chatd speaks it, with peers that break its rules, on both event loops."""

import asyncio
import gzip
import logging
import socket
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import pytest

from parley.http import (
    AnswerMalformed,
    Connections,
    HttpError,
    HttpOptions,
    Response,
)
from support.host.event_loops import on_both_loops, one_turn
from support.net.model_server import (
    LAST_CHUNK,
    Act,
    Script,
    chunk,
    head,
    loopback_certificate,
    model_server,
    whole,
)

FIXED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
LARGE_BYTES = 20_000_000

Serve = Callable[[StreamReader, StreamWriter], Awaitable[None]]


async def body_of(response: Response) -> bytes:
    """Return the whole body of an answer."""
    received = bytearray()

    def on_bytes(piece: bytes) -> bool:
        received.extend(piece)
        return False

    try:
        assert await response.stream_to(on_bytes)
    finally:
        response.close()
    return bytes(received)


async def asked(connections: Connections, url: str, sent: bytes = b"{}") -> bytes:
    async with asyncio.timeout(10):
        return await body_of(await connections.post(url, {}, sent))


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[str]:
    """Serve on a free port of this machine; gives the address."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@on_both_loops
async def test_of_two_answers_to_one_question_only_the_first_is_heard() -> None:
    second = b"HTTP/1.1 500 Oops\r\nX-Second: yes\r\nContent-Length: 5\r\n\r\nthere"
    async with (
        asyncio.timeout(5),
        Connections() as connections,
        model_server((FIXED + second,)) as server,
    ):
        response = await connections.post(server.url, {}, b"{}")
        assert await body_of(response) == b"hello"
    assert (response.status, response.reason) == (200, "OK")
    assert response.headers == {"content-length": "5"}


@on_both_loops
async def test_garbage_behind_an_answer_costs_no_more_than_the_connection() -> None:
    async with model_server((FIXED + b"!!!",), (FIXED,)) as server, Connections() as connections:
        assert await asked(connections, server.url) == b"hello"
        assert await asked(connections, server.url) == b"hello"
    assert [each.connection for each in server.asked] == [1, 2]


@on_both_loops
async def test_what_came_before_an_error_is_given_first() -> None:
    got: list[bytes] = []

    def on_bytes(piece: bytes) -> bool:
        got.append(piece)
        return False

    script = (head("429 Slow", Retry_After="7") + chunk(b"hello") + b"zz\r\n",)
    async with asyncio.timeout(5), model_server(script) as server, Connections() as connections:
        response = await connections.post(server.url, {}, b"{}")
        with pytest.raises(AnswerMalformed):
            await response.stream_to(on_bytes)
        response.close()
    assert (response.status, response.headers["retry-after"], got) == (429, "7", [b"hello"])


@pytest.mark.parametrize(
    "script",
    [
        (head(), chunk(b"a"), b"0\r\n", *[b"A: b\r\n" * 10_000] * 10, Act.HANG),
        (head(), chunk(b"a"), b"0\r\nA: ", *[b"b" * 65_536] * 10, Act.HANG),
        (head(), b"1;a=", *[b"b" * 65_536] * 10, Act.HANG),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 5_000, Act.HANG),
        (b"HTTP/1.1 101 Changed\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", Act.HANG),
        (head(content_encoding="gzip") + chunk(gzip.compress(b"\n" * 50_000_000)), Act.HANG),
    ],
    ids=["trailers", "trailer", "extension", "interim", "another protocol", "bomb"],
)
@on_both_loops
async def test_what_never_becomes_a_body_is_an_error_and_not_held(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "asyncio"):
        async with model_server(script) as server, Connections() as connections:
            with pytest.raises(AnswerMalformed):
                await asked(connections, server.url)
            async with asyncio.timeout(5):
                await server.hung_up.wait()
    assert caplog.messages == []


@on_both_loops
async def test_what_stands_behind_a_body_changes_nothing() -> None:
    script = (head(), chunk(b"hello"), b"0\r\nContent-Type: text/plain\r\n\r\n")
    async with asyncio.timeout(5), model_server(script) as server, Connections() as connections:
        response = await connections.post(server.url, {}, b"{}")
        assert await body_of(response) == b"hello"
    assert response.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize("encoding", ["none", "identity", "utf-8", "GZIP"])
@on_both_loops
async def test_only_what_is_packed_is_unpacked(encoding: str) -> None:
    body = gzip.compress(b"hello") if encoding == "GZIP" else b"hello"
    async with (
        Connections() as connections,
        model_server(whole(body, content_encoding=encoding)) as server,
    ):
        assert await asked(connections, server.url) == b"hello"


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "TLS"])
@on_both_loops
async def test_a_server_may_begin_to_answer_before_it_has_read_all(
    is_secure: bool, tmp_path: Path
) -> None:
    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head() + chunk(b"hel"))
        await writer.drain()
        is_answered.set()
        await reader.readexactly(LARGE_BYTES)
        writer.write(chunk(b"lo") + LAST_CHUNK)
        await writer.drain()
        await reader.read()
        writer.close()

    is_answered = asyncio.Event()
    certified = loopback_certificate(tmp_path)
    tls = certified.server if is_secure else None
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    url = f"http{'s' if is_secure else ''}://127.0.0.1:{port}/"
    async with server, Connections(HttpOptions(trust=certified.client)) as connections:
        assert await asked(connections, url, b"x" * LARGE_BYTES) == b"hello"
    assert is_answered.is_set()


@on_both_loops
async def test_bytes_are_taken_in_the_context_of_who_asked() -> None:
    whose: ContextVar[str] = ContextVar("whose", default="")
    seen: list[tuple[str, str]] = []

    async def ask_as(name: str, more: asyncio.Event) -> None:
        def on_bytes(_: bytes) -> bool:
            seen.append((name, whose.get()))
            more.set()
            return False

        whose.set(name)
        response = await connections.post(server.url, {}, b"{}")
        await response.stream_to(on_bytes)
        response.close()

    paces = [asyncio.Event(), asyncio.Event()]
    scripts = [(head(), chunk(b"a"), pace, chunk(b"b"), LAST_CHUNK) for pace in paces]
    async with asyncio.timeout(5), model_server(*scripts) as server, Connections() as connections:
        for name, pace in zip(("ann", "bob"), paces, strict=True):
            async with asyncio.TaskGroup() as group:
                group.create_task(ask_as(name, pace))
    assert seen == [("ann", "ann")] * 2 + [("bob", "bob")] * 2
    assert [each.connection for each in server.asked] == [1, 1]


@pytest.mark.parametrize("act", [Act.CLOSE, Act.RESET])
@on_both_loops
async def test_a_kept_connection_that_is_just_being_closed_is_an_error_that_may_pass(
    act: Act,
) -> None:
    writers: list[StreamWriter] = []

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        writers.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(FIXED)
                if len(writers) == connections_count:
                    is_full.set()
                await is_full.wait()
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    async def ask() -> None:
        with suppress(HttpError, OSError):
            assert await asked(connections, url, b"") == b"hello"

    connections_count, is_full = 20, asyncio.Event()
    async with asyncio.timeout(10), served(serve) as url, Connections() as connections:
        async with asyncio.TaskGroup() as group:
            for _ in range(connections_count):
                group.create_task(ask())
        for writer in writers:
            if act is Act.RESET:
                raw = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        async with asyncio.TaskGroup() as group:
            for _ in range(connections_count):
                group.create_task(ask())
                await one_turn()  # One for each turn of the loop: one meets the moment.


@on_both_loops
async def test_who_sends_much_at_once_is_read_by_turns() -> None:
    sizes: list[int] = [0]

    def on_bytes(piece: bytes) -> bool:
        sizes[-1] += len(piece)
        return False

    async def turn() -> None:
        while not is_over:
            sizes.append(0)
            await one_turn()

    is_over = False
    script = (head(), *[chunk(b"x" * 1_000_000)] * 32, LAST_CHUNK)
    async with asyncio.timeout(20), model_server(script) as server, Connections() as connections:
        response = await connections.post(server.url, {}, b"{}")
        async with asyncio.TaskGroup() as group:
            group.create_task(turn())
            await response.stream_to(on_bytes)
            is_over = True
        response.close()
    assert (sum(sizes), max(sizes) <= 2 * 256 * 1024) == (32_000_000, True)


@on_both_loops
async def test_where_a_body_ends_is_for_nobody_else_to_say() -> None:
    headers = {"content-length": "1", "Transfer-Encoding": "chunked", "Host": "elsewhere"}
    async with asyncio.timeout(5), model_server((FIXED,)) as server, Connections() as connections:
        await body_of(await connections.post(server.url, headers, b"{}"))
    (sent,) = server.asked
    assert (sent.body, sent.headers["content-length"]) == (b"{}", "2")
    assert sent.headers["host"] == "elsewhere"
    assert "transfer-encoding" not in sent.headers
