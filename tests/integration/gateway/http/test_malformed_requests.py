"""Input that is no valid request, and clients that leave: what is refused and what is logged."""

import asyncio
import json
import logging

import pytest
from starlette.types import Receive, Scope, Send

from gateway.http.limits.refused_input import LOGGED_EVERY_S
from gateway.http.protocol import PRESENCE
from parley.clock import FakeClock
from support.gateway.raw_connections import CHUNKED, HEAD, code_of, connected
from support.host.event_loops import on_both_loops

NO_HOST = b"GET / HTTP/1.1\r\n\r\n"
SIZE = 70_000


async def test_malformed_requests_are_counted_in_one_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    async with connected(clock=clock, connections=7) as connections:
        for number, connection in enumerate(connections):
            if number == 6:
                clock.advance(LOGGED_EVERY_S)
            await connection.send(NO_HOST)
            await connection.answer()
    logged = [
        (vars(record).get("refused_count"), vars(record).get("last_detail"))
        for record in caplog.records
        if record.levelno >= logging.WARNING
    ]
    detail = "A request has exactly one Host header."
    assert logged == [(1, detail), (6, detail)]


async def test_an_upgrade_that_is_not_offered_is_answered_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with connected() as (connection,):
        await connection.send(HEAD + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n")
        assert await connection.answer() == (200, b"0")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_chunks_need_http_1_1() -> None:
    async with connected() as (connection,):
        await connection.send(CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"1\r\na\r\n0\r\n\r\n")
        status, body = await connection.answer()
    assert (status, json.loads(body)["detail"]) == (
        400,
        "A body in chunks needs HTTP/1.1; in HTTP/1.0 it has a Content-Length.",
    )


@pytest.mark.parametrize(
    "chunks",
    [
        b"1;" + b"x" * SIZE + b"\r\na\r\n0\r\n\r\n",
        b"1\r\na\r\n0\r\nX: " + b"x" * SIZE + b"\r\n\r\n",
        (b"1;" + b"x" * 1000 + b"\r\na\r\n") * (SIZE // 1000) + b"0\r\n\r\n",
    ],
    ids=["extension", "trailer", "extensions of many chunks"],
)
async def test_what_is_no_body_counts_as_head_also_in_one_write(chunks: bytes) -> None:
    async with connected() as (connection,):
        await connection.send(CHUNKED + chunks)
        assert code_of(await connection.answer()) == (431, "REQUEST_HEADER_FIELDS_TOO_LARGE")


async def test_the_frames_of_small_chunks_do_not_count_as_head() -> None:
    async with connected() as (connection,):
        await connection.send(CHUNKED + b"001\r\na\r\n" * SIZE + b"0\r\n\r\n")
        assert await connection.answer() == (200, str(SIZE).encode())


class AnsweredTooLate:
    """Answers a request when its client is gone."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ended = asyncio.Event()
        self.received = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.Event()
        scope[PRESENCE].when_gone(gone.set)
        await receive()
        self.began.set()
        await gone.wait()
        try:
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b"refused"})
            async with asyncio.timeout(2):
                self.received = (await receive())["type"]
        finally:
            self.ended.set()


@on_both_loops
async def test_a_client_that_leaves_several_requests_is_gone_for_the_first_of_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = AnsweredTooLate()
    async with connected(app=late) as (connection,):
        await connection.send((HEAD + b"Content-Length: 0\r\n\r\n") * 2)
        await late.began.wait()
        await connection.close()
        await late.ended.wait()
    assert late.received == "http.disconnect"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
