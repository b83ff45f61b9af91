"""Calls of models over real connections: what goes out, what comes back, what errors say."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from email.utils import format_datetime
from functools import partial

import pytest

from chatd.content.domain.messages import ErrorKind
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
)
from chatd.models.engine.target import Target
from chatd.providers.transport import HttpModels
from chatd.providers.wire import HttpRequest
from parley.clock import FakeClock
from parley.clock.fake import EPOCH
from support.chatd.providers.answers import answered, answering
from support.chatd.providers.plain_wire import (
    BODY,
    CUT,
    EVENTS,
    HELLO,
    KEY,
    REQUEST,
    PlainWire,
    ask,
    said,
    seen,
    target,
)
from support.net.fake_flush_timer import FakeFlushTimer
from support.net.model_server import (
    LAST_CHUNK,
    Act,
    Script,
    chunk,
    head,
    model_server,
    whole,
)


@pytest.fixture
async def models() -> AsyncIterator[HttpModels]:
    async with HttpModels(FakeClock()) as opened:
        yield opened


async def test_events_come_out_as_they_were_sent_and_the_request_as_it_was_made(
    models: HttpModels,
) -> None:
    async with model_server(whole(BODY)) as server:
        assert await ask(models, server.url, PlainWire(b'{"stream":true}')) == (HELLO, None)
    (asked,) = server.asked
    assert (asked.path, asked.body) == ("/answer", b'{"stream":true}')
    assert asked.headers["authorization"] == f"bearer {KEY}"
    assert asked.headers["accept-encoding"] == "identity"
    assert "cookie" not in asked.headers


async def test_a_connection_is_used_again_and_cookies_are_not(models: HttpModels) -> None:
    async with model_server(whole(BODY, Set_Cookie="a=b")) as server:
        for _ in range(3):
            assert await ask(models, server.url) == (HELLO, None)
    assert [asked.connection for asked in server.asked] == [1, 1, 1]
    assert not any("cookie" in asked.headers for asked in server.asked)


async def test_an_answer_is_over_with_its_last_event_even_if_the_body_is_not(
    models: HttpModels,
) -> None:
    async with model_server((head(), chunk(BODY), Act.HANG)) as server:
        assert await ask(models, server.url) == (HELLO, None)
        async with asyncio.timeout(5):
            await server.hung_up.wait()


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ({"Retry_After": "7"}, 7),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"RETRY_AFTER": format_datetime(EPOCH + timedelta(seconds=20), usegmt=True)}, 20),
        ({"Retry_After": "1e9"}, 1e9),
        ({"Retry_After": "soon"}, None),
    ],
)
async def test_a_rate_limit_says_how_long_to_wait(
    models: HttpModels, header: dict[str, str], wait_s: float | None
) -> None:
    answer = whole(b'{"error":{"message":"slow down"}}', "429 Too Many Requests", **header)
    async with model_server(answer) as server:
        _, error = await ask(models, server.url)
    assert error is not None
    assert seen(error) == (ErrorKind.RATE_LIMIT, True, 429)
    assert (error.retry_after_s, error.detail) == (wait_s, "slow down")


@pytest.mark.parametrize(
    ("status", "kind", "is_retryable"),
    [
        ("400 Bad Request", ErrorKind.GENERIC, False),
        ("401 Unauthorized", ErrorKind.AUTH, False),
        ("403 Forbidden", ErrorKind.AUTH, False),
        ("404 Not Found", ErrorKind.GENERIC, False),
        ("307 Temporary Redirect", ErrorKind.CONFIG, False),
        ("500 Internal Server Error", ErrorKind.GENERIC, True),
        ("503 Service Unavailable", ErrorKind.TIMEOUT, True),
        ("529 ", ErrorKind.OVERLOADED, True),
    ],
)
async def test_a_status_is_judged_and_no_redirection_is_followed(
    models: HttpModels, status: str, kind: ErrorKind, is_retryable: bool
) -> None:
    async with model_server(whole(b"", status, Location="/elsewhere")) as server:
        _, error = await ask(models, server.url)
    assert error is not None
    assert seen(error) == (kind, is_retryable, int(status[:3]))
    assert len(server.asked) == 1


async def test_a_key_that_an_error_repeats_is_not_shown(models: HttpModels) -> None:
    body = json.dumps({"error": {"message": f"no such key: {KEY}"}}).encode()
    async with model_server(whole(body, "401 Unauthorized")) as server:
        _, error = await ask(models, server.url)
    assert error is not None
    assert error.detail == "no such key: [redacted]"


async def test_of_a_huge_error_only_the_beginning_is_read(models: HttpModels) -> None:
    megabyte = chunk(b'{"error":' + b" " * 2**20)
    async with model_server((head("500 Oops"), *[megabyte] * 50, LAST_CHUNK)) as server:
        _, error = await ask(models, server.url)
        async with asyncio.timeout(5):
            await server.hung_up.wait()
    assert error is not None
    assert (seen(error), error.detail) == ((ErrorKind.GENERIC, True, 500), "status 500 Oops")


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        (
            "application/json",
            b'{"error":{"code":429,"message":"m"}}',
            (ErrorKind.RATE_LIMIT, True, 429),
        ),
        (
            "text/event-stream",
            b'\n{"error":{"message":"overloaded"}}',
            (ErrorKind.OVERLOADED, True, 0),
        ),
        ("application/json", b'{"choices":[]}', (ErrorKind.CONFIG, False, 0)),
        ("text/html", b"<html>Sign in to the Wi-Fi", (ErrorKind.CONFIG, False, 0)),
        ("text/plain", b"hello", CUT),
        ("text/event-stream", b"", CUT),
    ],
)
async def test_a_good_status_with_something_else_than_events_is_an_error(
    models: HttpModels, content_type: str, body: bytes, expected: tuple[ErrorKind, bool, int]
) -> None:
    async with model_server(whole(body, content_type=content_type)) as server:
        events, error = await ask(models, server.url)
    assert error is not None
    assert said(events) == []
    assert seen(error) == expected


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/octet-stream"])
async def test_events_are_read_whatever_they_are_called(
    models: HttpModels, content_type: str
) -> None:
    async with model_server(whole(BODY, content_type=content_type)) as server:
        assert await ask(models, server.url) == (HELLO, None)


async def test_bytes_without_events_are_a_sign_of_life_once_a_second() -> None:
    clock, comment = FakeClock(), chunk(b": still thinking\n\n")
    may_think, may_rest, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
    script: Script = (head(), comment, may_think, comment, comment, chunk(EVENTS[0]), may_rest)
    script = (*script, comment, may_end, chunk(EVENTS[2]), LAST_CHUNK)
    async with (
        model_server(script) as server,
        HttpModels(clock) as models,
        answering(partial(models.answer, PlainWire(), REQUEST, target(server.url))) as following,
    ):
        assert await following() == Heartbeat()
        clock.advance(0.9)
        may_think.set()
        assert await following() == TextDelta("hel")
        clock.advance(0.1)
        may_rest.set()
        assert await following() == Heartbeat()
        may_end.set()
        assert await following() == Finished()


async def test_a_process_that_is_late_shows_the_first_words_at_once_and_more_on_its_beat() -> None:
    flush_timer, may_begin = FakeFlushTimer(), asyncio.Event()
    may_go_on, may_end = asyncio.Event(), asyncio.Event()
    opening: Script = (head(), chunk(b": thinking\n\n"), may_begin, chunk(EVENTS[0]), may_go_on)
    script: Script = (*opening, chunk(EVENTS[1]), may_end, chunk(EVENTS[2]), LAST_CHUNK)
    async with (
        model_server(script) as server,
        HttpModels(FakeClock(), flush_timer=flush_timer) as models,
        answering(partial(models.answer, PlainWire(), REQUEST, target(server.url))) as following,
    ):
        assert await following() == Heartbeat()
        may_begin.set()
        assert await following() == TextDelta("hel")
        may_go_on.set()
        await flush_timer.until_awaited()
        flush_timer.flush()
        assert await following() == TextDelta("lo")
        may_end.set()
        assert await following() == Finished()


async def test_an_answer_whose_body_does_not_end_is_over_on_the_beat() -> None:
    flush_timer, may_end = FakeFlushTimer(), asyncio.Event()
    script: Script = (head(), chunk(EVENTS[0]), may_end, chunk(EVENTS[1] + EVENTS[2]), Act.HANG)
    async with (
        model_server(script) as server,
        HttpModels(FakeClock(), flush_timer=flush_timer) as models,
        answering(partial(models.answer, PlainWire(), REQUEST, target(server.url))) as following,
    ):
        assert await following() == TextDelta("hel")
        may_end.set()
        await flush_timer.until_awaited()
        flush_timer.flush()
        assert [await following(), await following()] == [TextDelta("lo"), Finished()]
        await server.hung_up.wait()


@pytest.mark.parametrize("act", [Act.CLOSE, Act.RESET])
async def test_words_that_wait_for_a_beat_are_not_lost_with_the_connection(act: Act) -> None:
    script = (head(), chunk(EVENTS[0]), chunk(EVENTS[1]), act)
    async with (
        model_server(script) as server,
        HttpModels(FakeClock(), flush_timer=FakeFlushTimer()) as models,
    ):
        events, error = await ask(models, server.url)
    assert error is not None
    assert (events, seen(error)) == ([TextDelta("hello")], CUT)


async def test_a_slow_drip_arrives_whole(models: HttpModels) -> None:
    drops = [chunk(BODY[place : place + 1]) for place in range(len(BODY))]
    async with model_server((head(), *drops, LAST_CHUNK)) as server:
        events, error = await ask(models, server.url)
    assert (said(events), error) == (HELLO, None)


async def test_who_stops_waiting_closes_the_connection_at_once(models: HttpModels) -> None:
    script = (head(), chunk(EVENTS[0]), Act.HANG)
    async with asyncio.timeout(5), model_server(script) as server:
        ask = partial(models.answer, PlainWire(), REQUEST, target(server.url))
        async with answering(ask) as following:
            assert await following() == TextDelta("hel")
        await server.hung_up.wait()


async def test_what_a_taker_raises_ends_the_call_and_comes_out_of_it(models: HttpModels) -> None:
    def on_event(event: ModelEvent) -> None:
        raise ArithmeticError

    async with asyncio.timeout(5), model_server((head(), chunk(EVENTS[0]), Act.HANG)) as server:
        with pytest.raises(ArithmeticError):
            await models.answer(PlainWire(), REQUEST, target(server.url), answered(on_event))
        await server.hung_up.wait()


async def test_a_large_request_arrives_whole(models: HttpModels) -> None:
    body = b"x" * 3_000_000
    async with model_server(whole(BODY)) as server:
        assert await ask(models, server.url, PlainWire(body)) == (HELLO, None)
    assert server.asked[0].body == body


async def test_what_a_wire_refuses_is_not_sent(models: HttpModels) -> None:
    refusal = ModelError(ErrorKind.CONFIG, "the picture is too large", is_retryable=False)

    class Refusing(PlainWire):
        def request(self, request: ModelRequest, target: Target) -> HttpRequest:
            raise refusal

    async with model_server(whole(BODY)) as server:
        assert await ask(models, server.url, Refusing()) == ([], refusal)
    assert server.asked == []


class ThreadWire(PlainWire):
    """Notes in which threads its requests are made."""

    def __init__(self) -> None:
        super().__init__()
        self.is_main: list[bool] = []

    def request(self, request: ModelRequest, target: Target) -> HttpRequest:
        self.is_main.append(threading.current_thread() is threading.main_thread())
        return super().request(request, target)


async def test_the_schemas_of_a_new_set_of_tools_are_converted_in_a_thread(
    models: HttpModels,
) -> None:
    tools = [ToolSpec(f"t{number}", "", str(number), Executor.CLIENT) for number in range(3)]
    wire = ThreadWire()
    events: list[ModelEvent] = []
    for offered in ([], tools[:2], tools[:2], tools[1:], tools[:2]):
        async with model_server((head(), chunk(BODY), LAST_CHUNK)) as server:
            request = ModelRequest("m", (), tuple(offered))
            await models.answer(wire, request, target(server.url), answered(events.append))

    assert wire.is_main == [True, False, True, False, True]
