"""Answers of models that break on their way, or never were any."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import (
    Heartbeat,
    ModelError,
    ModelEvent,
    TextDelta,
)
from chatd.providers.transport import HttpModels
from parley.clock import FakeClock
from parley.http import HttpOptions
from parley.settings import Secret
from support.chatd.providers.plain_wire import (
    BODY,
    CUT,
    EVENTS,
    HELLO,
    KEY,
    REQUEST,
    PlainWire,
    ask,
    played,
    said,
    seen,
    sse,
    target,
)
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


@pytest.fixture
async def models() -> AsyncIterator[HttpModels]:
    async with HttpModels(FakeClock()) as opened:
        yield opened


RUNS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@RUNS
@given(st.lists(st.integers(min_value=1, max_value=len(BODY) - 1), max_size=8))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_how_the_body_is_cut_into_chunks_changes_nothing(
    run: Callable[..., Any], cuts: list[int]
) -> None:
    places = [0, *sorted(set(cuts)), len(BODY)]
    pieces = [chunk(BODY[start:end]) for start, end in pairwise(places)]

    async def answer() -> tuple[list[ModelEvent], ModelError | None]:
        async with (
            HttpModels(FakeClock()) as models,
            model_server((head(), *pieces, LAST_CHUNK)) as server,
        ):
            return await ask(models, server.url)

    events, error = run(answer())
    assert (said(events), error) == (HELLO, None)


SAID_BEFORE: tuple[list[ModelEvent], ...] = ([], [TextDelta("hel")], [TextDelta("hello")])


@pytest.mark.parametrize("kept", range(3))
@pytest.mark.parametrize(
    "ending",
    [(LAST_CHUNK,), (Act.CLOSE,), (Act.RESET,), (b"20\r\ndata: {", Act.CLOSE), (b"zz\r\n",)],
    ids=["ended", "closed", "reset", "inside a chunk", "no chunk"],
)
async def test_an_answer_cut_at_any_event_is_an_error_and_never_a_success(
    models: HttpModels, kept: int, ending: Script
) -> None:
    script = (head(), *map(chunk, EVENTS[:kept]), *ending)
    async with model_server(script) as server:
        events, error = await ask(models, server.url)
    assert error is not None
    assert seen(error) == CUT
    # What is broken may overtake what was sent before it.
    assert said(events) in (SAID_BEFORE[kept], [])
    assert error.message in (
        "Acme closed the stream before the answer was complete.",
        "Acme is temporarily unavailable.",
        "Acme sent an answer that cannot be read.",
    )


async def test_an_answer_cut_at_any_byte_before_its_end_is_an_error(models: HttpModels) -> None:
    end_at = len(BODY) - len(b"\n\n")
    scripts = [whole(BODY[:cut]) for cut in range(end_at)]
    async with model_server(*scripts) as server:
        for _ in scripts:
            _, error = await ask(models, server.url)
            assert error is not None
            assert seen(error) == CUT


async def test_a_body_without_length_that_ends_early_is_an_error(models: HttpModels) -> None:
    beginning = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    events, error = await played(models, beginning + EVENTS[0] + b"data: {", Act.CLOSE)
    assert (events, seen(error)) == ([TextDelta("hel")], CUT)


@pytest.mark.parametrize("ending", [Act.CLOSE, Act.RESET])
async def test_a_tls_connection_that_breaks_is_an_error(tmp_path: Path, ending: Act) -> None:
    certified = loopback_certificate(tmp_path)
    script = (head(), chunk(EVENTS[0]), ending)
    async with (
        model_server(script, tls=certified.server) as server,
        HttpModels(FakeClock(), HttpOptions(trust=certified.client)) as models,
    ):
        _, error = await ask(models, server.url)
    assert error is not None
    assert seen(error) == CUT


async def test_a_certificate_that_nobody_trusts_is_a_matter_of_configuration(
    models: HttpModels, tmp_path: Path
) -> None:
    async with model_server(whole(BODY), tls=loopback_certificate(tmp_path).server) as server:
        _, error = await ask(models, server.url)
    assert error is not None
    assert seen(error) == (ErrorKind.CONFIG, False, 0)


@pytest.mark.parametrize(
    "answer",
    [
        (Act.CLOSE,),
        (Act.RESET,),
        (b"garbage\r\n\r\n", Act.CLOSE),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", Act.CLOSE),
        (b"HTTP/1.1 200 OK\r\nContent-Len", Act.CLOSE),
        (b"\x16\x03\x01\x00\x05\x00", Act.CLOSE),
    ],
    ids=["closed", "reset", "garbage", "endless header", "half a head", "TLS"],
)
async def test_an_answer_that_is_no_http_is_a_lost_connection(
    models: HttpModels, answer: Script
) -> None:
    async with model_server(answer) as server:
        events, error = await ask(models, server.url)
    assert error is not None
    assert (events, seen(error)) == ([], CUT)
    assert error.message == "Acme is temporarily unavailable."


async def test_nobody_at_the_address_is_a_lost_connection_whatever_its_port(
    models: HttpModels,
) -> None:
    async with model_server(whole(BODY)) as server:
        pass
    events, error = await ask(models, server.url)
    assert error is not None
    assert (events, seen(error)) == ([], CUT)
    assert error.detail == "cannot connect to 127.0.0.1: Connection refused"


@pytest.mark.parametrize("url", ["", "nowhere", "ftp://127.0.0.1", "http://[::1"])
async def test_an_address_that_is_none_is_a_matter_of_configuration(
    models: HttpModels, url: str
) -> None:
    _, error = await ask(models, url)
    assert error is not None
    assert seen(error) == (ErrorKind.CONFIG, False, 0)


async def test_a_key_with_a_line_break_is_refused_and_not_shown(models: HttpModels) -> None:
    def nothing(event: ModelEvent) -> None:
        raise AssertionError(event)

    async with model_server(whole(BODY)) as server:
        broken = replace(target(server.url), api_key=Secret(f"{KEY}\r\nHost: elsewhere"))
        with pytest.raises(ModelError) as failed:
            await models.answer(PlainWire(), REQUEST, broken, nothing)
    assert seen(failed.value) == (ErrorKind.CONFIG, False, 0)
    assert KEY not in f"{failed.value!r} {failed.value.detail}"
    assert server.asked == []


@pytest.mark.parametrize(
    "data",
    [b"{garbage", b"\x00\x00", b"\xff\xfe\xfd", b"x" * 10_000_000],
    ids=["garbage", "NUL", "not UTF-8", "10 MB"],
)
async def test_an_event_that_cannot_be_read_fails_the_call_after_what_came_before(
    models: HttpModels, data: bytes
) -> None:
    script = (head(), chunk(EVENTS[0]), chunk(b"data: " + data + b"\n\n"), LAST_CHUNK)
    events, error = await played(models, *script)
    assert said(events) == [TextDelta("hel")]
    assert seen(error) == (ErrorKind.GENERIC, False, 0)


async def test_a_line_without_end_fails_the_call(models: HttpModels) -> None:
    megabyte = chunk(b"x" * 2**20)
    events, error = await played(models, head(), *[megabyte] * 20, Act.HANG)
    assert events == [Heartbeat()]
    assert seen(error) == CUT
    assert error.message == "Acme sent an answer that cannot be read."


async def test_a_compressed_answer_that_is_damaged_is_tried_again(models: HttpModels) -> None:
    packed = gzip.compress(EVENTS[0] + EVENTS[1], mtime=0)
    damaged = packed[:10] + b"\xff" * 20 + packed[30:]
    beginning = head().replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n", 1)
    events, error = await played(models, beginning, chunk(damaged), LAST_CHUNK)
    assert (events, seen(error)) == ([], CUT)
    assert error.message == "Acme sent an answer that cannot be read."


async def test_an_error_within_the_stream_is_judged(models: HttpModels) -> None:
    events, error = await played(
        models, head(), chunk(EVENTS[0]), chunk(sse({"error": "Overloaded"})), LAST_CHUNK
    )
    assert (events, seen(error)) == ([TextDelta("hel")], (ErrorKind.OVERLOADED, True, 0))
    assert error.detail == "Overloaded"


@pytest.mark.parametrize(
    "ending", [b"zz\r\n", b"0\r\nA: " + b"b" * 400_000, b"0\r\n\r\nHTTP/1.1 x"]
)
async def test_what_breaks_behind_the_last_event_breaks_nothing(
    models: HttpModels, ending: bytes
) -> None:
    async with model_server((head(), chunk(BODY) + ending, Act.HANG)) as server:
        assert await ask(models, server.url) == (HELLO, None)
        async with asyncio.timeout(5):
            await server.hung_up.wait()


async def test_an_answer_never_begins_with_what_was_left_of_another(models: HttpModels) -> None:
    left = gzip.compress(b'{"error":{"message":"of somebody else"}}' + b" " * 3_000_000)
    first = head("500 Oops", content_encoding="gzip") + chunk(left) + LAST_CHUNK
    async with model_server((first,), (head() + chunk(BODY) + LAST_CHUNK,)) as server:
        _, error = await ask(models, server.url)
        assert await ask(models, server.url) == (HELLO, None)
    assert error is not None
    assert seen(error) == (ErrorKind.GENERIC, True, 500)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (head("429 Slow", Retry_After="7") + b"zz\r\n", (ErrorKind.RATE_LIMIT, True, 429)),
        (
            b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno, never",
            (ErrorKind.AUTH, False, 401),
        ),
        (head("503 Oops", content_encoding="br"), (ErrorKind.TIMEOUT, True, 503)),
    ],
)
async def test_a_status_counts_even_if_the_body_is_damaged(
    models: HttpModels, answer: bytes, expected: tuple[ErrorKind, bool, int]
) -> None:
    _, error = await played(models, answer, Act.HANG)
    assert seen(error) == expected
