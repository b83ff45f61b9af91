"""HTTP/1.1 as chatd speaks it, against servers that play bytes."""

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest

from parley.http import (
    AnswerMalformed,
    ConnectionCut,
    Connections,
    HeaderInvalid,
    HttpError,
    HttpOptions,
    NotConnected,
)
from support.net.model_server import LAST_CHUNK, Act, Script, chunk, head, model_server, whole

FIXED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\nhel"


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    async with Connections() as opened:
        yield opened


async def body_of(connections: Connections, url: str, sent: bytes = b"{}") -> bytes:
    """Return the whole body of an answer."""
    received = bytearray()

    def on_bytes(piece: bytes) -> bool:
        received.extend(piece)
        return False

    async with asyncio.timeout(5):
        response = await connections.post(url, {}, sent)
        try:
            assert await response.stream_to(on_bytes)
        finally:
            response.close()
    return bytes(received)


async def test_a_get_has_no_body_and_its_answer_is_read_up_to_a_bound(
    connections: Connections,
) -> None:
    async with asyncio.timeout(5), model_server(whole(b"hello")) as server:
        for bytes_max, body in ((5, b"hello"), (100, b"hello"), (2, b"he")):
            response = await connections.get(f"{server.url}/there?x=1", {"X-Key": "k"})
            assert (response.status, await response.read(bytes_max)) == (200, body)
            response.close()
    assert {(each.path, each.headers["x-key"], each.body) for each in server.asked} == {
        ("/there?x=1", "k", b"")
    }
    assert all("content-length" not in each.headers for each in server.asked)


@pytest.mark.parametrize(
    "script",
    [
        (FIXED,),
        tuple(FIXED[place : place + 1] for place in range(len(FIXED))),
        whole(b"hello"),
        (UNTIL_CLOSED, b"lo", Act.CLOSE),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", FIXED),
        whole(gzip.compress(b"hello"), content_encoding="gzip"),
    ],
    ids=["length", "drip", "chunks", "until closed", "interim", "packed"],
)
async def test_a_body_is_whole_however_its_end_is_told(
    connections: Connections, script: Script
) -> None:
    async with model_server(script) as server:
        assert await body_of(connections, server.url) == b"hello"


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ((FIXED[:-1], Act.CLOSE), ConnectionCut),
        ((head(), chunk(b"hello"), Act.CLOSE), ConnectionCut),
        ((UNTIL_CLOSED, Act.RESET), ConnectionCut),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",), AnswerMalformed),
        ((b"SSH-2.0-server\r\n",), AnswerMalformed),
        (whole(b"no gzip", content_encoding="gzip"), AnswerMalformed),
        (whole(b"hello", content_encoding="br"), AnswerMalformed),
        ((b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000, Act.HANG), AnswerMalformed),
    ],
    ids=["length", "chunks", "reset", "no chunk", "no HTTP", "damaged", "packed", "endless head"],
)
async def test_what_is_no_whole_answer_is_an_error(
    connections: Connections, script: Script, error: type[HttpError]
) -> None:
    async with model_server(script) as server:
        with pytest.raises((error, ConnectionResetError)):
            await body_of(connections, server.url)


async def test_a_connection_serves_the_next_call_once_its_answer_ended(
    connections: Connections,
) -> None:
    async with model_server((FIXED,)) as server:
        for _ in range(3):
            await body_of(connections, server.url)
    assert [asked.connection for asked in server.asked] == [1, 1, 1]


@pytest.mark.parametrize(
    "script",
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",),
        (FIXED + FIXED,),  # More than was asked for.
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",),
    ],
    ids=["said so", "spoke unasked", "old"],
)
async def test_a_connection_that_cannot_be_trusted_serves_nobody_else(
    connections: Connections, script: Script
) -> None:
    async with model_server(script, (FIXED,)) as server:
        await body_of(connections, server.url)
        await body_of(connections, server.url)
    assert [asked.connection for asked in server.asked] == [1, 2]


async def test_a_connection_that_nobody_uses_is_closed() -> None:
    async with (
        asyncio.timeout(5),
        model_server((FIXED,)) as server,
        Connections(HttpOptions(idle_s=0.01)) as connections,
    ):
        await body_of(connections, server.url)
        await server.hung_up.wait()


async def test_closing_closes_what_is_idle_and_what_is_not() -> None:
    async with asyncio.timeout(5), model_server((head(), chunk(b"a"), Act.HANG)) as server:
        async with Connections() as connections:
            response = await connections.post(server.url, {}, b"{}")
            assert not await response.stream_to(lambda _: True)
        await server.hung_up.wait()
        with pytest.raises(ConnectionCut):
            await response.stream_to(lambda _: False)


async def test_who_has_enough_may_ask_for_the_rest_later(connections: Connections) -> None:
    got: list[bytes] = []

    def one(piece: bytes) -> bool:
        got.append(piece)
        return True

    more = asyncio.Event()
    script = (head(), chunk(b"a"), more, chunk(b"b"), LAST_CHUNK)
    async with asyncio.timeout(5), model_server(script) as server:
        response = await connections.post(server.url, {}, b"{}")
        assert not await response.stream_to(one)
        more.set()
        while not await response.stream_to(one):
            pass
        response.close()
    assert got == [b"a", b"b"]


async def test_an_answer_that_comes_before_all_was_sent_is_read(connections: Connections) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0, limit=1024)
    port = server.sockets[0].getsockname()[1]
    async with asyncio.timeout(5), server:
        url = f"http://127.0.0.1:{port}/"
        response = await connections.post(url, {}, b"x" * 50_000_000)
        assert (response.status, response.reason) == (413, "Too Large")
        response.close()


@pytest.mark.parametrize("value", ["a\r\nHost: b", "a\nb", "a\x00b"])
async def test_a_header_cannot_carry_another(connections: Connections, value: str) -> None:
    async with model_server((FIXED,)) as server:
        with pytest.raises(HeaderInvalid) as refused:
            await connections.post(server.url, {"X-Key": value}, b"")
    assert value not in str(refused.value)
    assert server.asked == []


async def test_a_host_that_does_not_exist_is_told_by_name(connections: Connections) -> None:
    with pytest.raises(NotConnected, match=r"cannot connect to nowhere\.invalid: "):
        await connections.post("http://nowhere.invalid/", {}, b"")
