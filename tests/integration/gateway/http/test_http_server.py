"""What the HTTP port does with connections before there is a request, seen from a raw socket."""

import asyncio
import gc
import json
import socket
import weakref
from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Any

import pytest
import uvloop
from starlette.types import Receive, Scope, Send

from gateway.http.limits.connections import ConnectionRefusal, OpenConnections
from gateway.http.limits.start_queue import UNADMITTED_MAX
from gateway.http.protocol import ADMITTED, AUTHENTICATED, HeadLimits
from gateway.http.server import ACCEPTS_PER_ITERATION, serve_http
from parley.clock import SystemClock
from support.gateway.raw_connections import (
    ANYWHERE,
    CHUNKED,
    HEAD,
    PUBLIC_URL,
    code_of,
    connected,
    greet,
)

IMPATIENT = HeadLimits(s_max=0.05)
HEAD_BYTES_MAX = HeadLimits().bytes_max


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET /",
        HEAD + b"X-Long: ",
        HEAD + b"Content-Length: 0\r\n\r\n" + HEAD + b"X-Long: ",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Trailer: ",
    ],
    ids=["target", "header", "header of a second request", "trailer"],
)
async def test_a_head_without_end_is_not_kept(beginning: bytes) -> None:
    async with connected() as (connection,):
        await connection.send(beginning)
        with pytest.raises(ConnectionError):
            await connection.send_without_end()


async def test_a_head_that_grows_too_large_is_told_so() -> None:
    async with connected() as (connection,):
        # Not a byte more than it takes: what is unread at the end would reset the connection.
        await connection.send(HEAD + b"X: ")
        await connection.send(b"x" * (HEAD_BYTES_MAX + 1 - len(HEAD) - 3))
        answer = await connection.answer()
        rest = await connection.rest()
    assert code_of(answer) == (431, "REQUEST_HEADER_FIELDS_TOO_LARGE")
    assert rest == b""


async def test_many_small_headers_are_too_large_together() -> None:
    headers = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(70))
    async with connected() as (connection,):
        await connection.send(HEAD + headers + b"\r\n")
        answer = await connection.answer()
    assert code_of(answer) == (431, "REQUEST_HEADER_FIELDS_TOO_LARGE")


async def test_bodies_and_further_requests_do_not_count_as_head() -> None:
    body = b"x" * (3 * HEAD_BYTES_MAX)
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    async with connected() as (connection,):
        await connection.send(request + request)
        answers = [await connection.answer(), await connection.answer()]
        await connection.send(request)
        answers.append(await connection.answer())
    assert answers == [(200, str(len(body)).encode())] * 3


@pytest.mark.parametrize("beginning", [b"", b"\r\n", HEAD], ids=["nothing", "line", "some headers"])
async def test_a_head_that_does_not_come_in_time_ends_the_connection(beginning: bytes) -> None:
    async with connected(limits=IMPATIENT) as (connection,):
        await connection.send(beginning)
        assert await connection.rest() == b""


async def test_the_head_of_a_second_request_must_come_in_time_too() -> None:
    async with connected(limits=IMPATIENT) as (connection,):
        await connection.send(HEAD + b"Content-Length: 0\r\n\r\n")
        first = await connection.answer()
        await connection.send(HEAD)
        assert (first, await connection.rest()) == ((200, b"0"), b"")


async def test_a_body_may_take_longer_than_a_head() -> None:
    async with connected(limits=IMPATIENT, connections=2) as (connection, silent):
        await connection.send(HEAD + b"Content-Length: 2\r\n\r\na")
        assert await silent.rest() == b""
        await connection.send(b"b")
        assert await connection.answer() == (200, b"2")


@pytest.mark.parametrize("nonsense", [b"BREW /tea HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00"])
async def test_what_is_no_known_request_is_answered_with_a_problem(nonsense: bytes) -> None:
    async with connected() as (connection,):
        await connection.send(nonsense)
        assert code_of(await connection.answer()) == (400, "BAD_REQUEST")


async def test_a_refused_head_is_a_problem_with_a_page() -> None:
    async with connected() as (connection,):
        await connection.send(b"GET / HTTP/1.1\r\n\r\n")
        status, body = await connection.answer()
    assert (status, json.loads(body)) == (
        400,
        {
            "type": "https://parley.test/problems/BAD_REQUEST",
            "title": "Bad request",
            "status": 400,
            "detail": "A request has exactly one Host header.",
            "code": "BAD_REQUEST",
            "retryable": False,
        },
    )


async def test_two_authorization_headers_are_refused() -> None:
    key = b"Authorization: Bearer a\r\n"
    async with connected() as (connection,):
        await connection.send(HEAD + key + b"authorization: Bearer b\r\n\r\n")
        status, body = await connection.answer()
    assert (status, json.loads(body)["detail"]) == (
        400,
        "A request has at most one Authorization header.",
    )


@pytest.mark.parametrize(
    "chunks", [b"zz\r\n", b"1\r\nab\r\n", b"-1\r\n", b"1\r\na\r\nnonsense\r\n", b"g"]
)
async def test_a_body_that_is_not_in_chunks_is_answered_with_a_problem(chunks: bytes) -> None:
    async with connected() as (connection,):
        await connection.send(CHUNKED)
        await connection.send(chunks)
        status, body = await connection.answer()
        rest = await connection.rest()
    assert (status, json.loads(body), rest) == (
        400,
        {
            "type": "https://parley.test/problems/INVALID_CHUNKS",
            "title": "Invalid chunks",
            "status": 400,
            "detail": "The body is not in chunks, as its Transfer-Encoding says.",
            "code": "INVALID_CHUNKS",
            "retryable": False,
        },
        b"",
    )


async def test_trailers_that_are_too_large_are_told_so() -> None:
    trailers = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(70))
    async with connected() as (connection,):
        await connection.send(CHUNKED + b"1\r\na\r\n0\r\n" + trailers + b"\r\n")
        assert code_of(await connection.answer()) == (431, "REQUEST_HEADER_FIELDS_TOO_LARGE")


async def test_chunks_after_an_answer_get_no_second_one() -> None:
    async def hasty(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async with connected(app=hasty) as (connection,):
        await connection.send(CHUNKED)
        first = await connection.answer()
        await connection.send(b"zz\r\n")
        assert (first, await connection.rest()) == ((204, b""), b"")


async def test_invalid_chunks_of_a_queued_request_leave_the_answer_before_alone() -> None:
    may_answer = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await may_answer.wait()
        await greet(scope, receive, send)

    async with connected(app=slow) as (connection,):
        await connection.send(HEAD + b"Content-Length: 0\r\n\r\n" + CHUNKED + b"zz\r\n")
        may_answer.set()
        assert b"INVALID_CHUNKS" not in await connection.rest()


async def test_a_connection_too_many_is_told_to_come_back_and_the_others_go_on() -> None:
    async with connected(connections_max=2, connections=2, further=1) as (first, second, third):
        for busy in (first, second):
            await busy.send(HEAD + b"Content-Length: 1\r\n\r\n")
        await third.connect()
        await third.send(HEAD + b"Content-Length: 0\r\n\r\n")
        refused = await third.rest()
        for busy in (first, second):
            await busy.send(b"a")
            assert await busy.answer() == (200, b"1")
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 2\r\n" in refused
    assert b'"code":"SERVER_BUSY"' in refused


async def test_one_address_cannot_have_all_connections() -> None:
    async with connected(connections_max=8, connections=6, further=1) as (*others, last):
        for busy in others:
            await busy.send(HEAD + b"Content-Length: 1\r\n\r\n")
        await last.connect()
        await last.send(HEAD + b"Content-Length: 0\r\n\r\n")
        assert code_of(await last.answer()) == (429, "TOO_MANY_CONNECTIONS")


async def test_an_idle_connection_makes_room_for_a_new_one() -> None:
    async with connected(connections_max=2, connections=2, further=1) as (first, second, third):
        for each in (first, second):
            await each.send(HEAD + b"Content-Length: 0\r\n\r\n")
            assert await each.answer() == (200, b"0")
        await third.connect()
        await third.send(HEAD + b"Content-Length: 0\r\n\r\n")
        assert await third.answer() == (200, b"0")
        assert await first.rest() == b""
        await second.send(HEAD + b"Content-Length: 0\r\n\r\n")
        assert await second.answer() == (200, b"0")


async def test_many_connections_too_many_are_all_refused_and_counted_no_more() -> None:
    async with connected(connections_max=2, connections=2, further=150) as (first, second, *rest):
        for busy in (first, second):
            await busy.send(HEAD + b"Content-Length: 1\r\n\r\n")
        for each in rest:
            await each.connect()
        assert all([b"SERVER_BUSY" in await each.rest() for each in rest[-10:]])
        for each in rest:
            await each.close()
        await first.send(b"a")
        assert await first.answer() == (200, b"1")
        await first.close()
        await rest[0].connect()
        await rest[0].send(HEAD + b"Content-Length: 0\r\n\r\n")
        assert await rest[0].answer() == (200, b"0")


def test_many_connections_are_accepted_in_one_iteration_of_the_loop() -> None:
    """Otherwise clients that connect anew and anew let all others wait in the backlog."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(accept_all_that_wait())


class CountedConnections(OpenConnections):
    """Counts what was accepted."""

    accepted = 0

    def enter(self, connection: Any, peer: str) -> ConnectionRefusal | None:
        self.accepted += 1
        return super().enter(connection, peer)


async def accept_all_that_wait() -> None:
    connections = 4 * ACCEPTS_PER_ITERATION
    open_connections = CountedConnections(1000, address_max=1000)
    async with (
        asyncio.timeout(20),
        serve_http(
            greet,
            ANYWHERE,
            public_url=PUBLIC_URL,
            open_connections=open_connections,
            clock=SystemClock(),
        ) as address,
    ):
        # The loop stands still while these connect, so that all of them wait in the backlog.
        place = (address.host, address.port)
        with ExitStack() as kept:
            for _ in range(connections):
                kept.enter_context(socket.create_connection(place))
            iterations = 0
            while open_connections.accepted < connections:
                await one_iteration()
                iterations += 1
    assert iterations <= 8


def shut_down_sending(client: socket.socket) -> None:
    client.shutdown(socket.SHUT_WR)


async def one_iteration() -> None:
    """Wait until the event loop has looked at its sockets once more."""
    loop = asyncio.get_running_loop()
    looked = loop.create_future()
    loop.call_soon(loop.call_soon, looked.set_result, None)
    await looked


class HeldRequests:
    """An application that admits no request until it is told to."""

    def __init__(self, authenticated: Collection[bytes]) -> None:
        self.started: list[bytes] = []
        self._authenticated = authenticated
        self._admitted: list[Callable[[], None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        credential = dict(scope["headers"])[b"authorization"]
        self.started.append(credential)
        if credential in self._authenticated:
            scope[AUTHENTICATED]()
        self._admitted.append(scope[ADMITTED])
        while (await receive())["type"] != "http.disconnect":
            pass

    async def until_started(self, credential: bytes) -> None:
        while credential not in self.started:
            await one_iteration()

    def admit(self) -> None:
        """Admit the request that was started first."""
        self._admitted.pop(0)()


async def test_a_client_with_many_requests_does_not_delay_the_start_of_those_of_others() -> None:
    app = HeldRequests(authenticated={b"Bearer greedy"})
    many = UNADMITTED_MAX + 3
    async with connected(app=app, connections=many + 2, connections_max=100) as made:
        first, *greedy, other = made
        await first.send(HEAD + b"Authorization: Bearer greedy\r\n\r\n")
        await app.until_started(b"Bearer greedy")
        app.admit()
        for connection in greedy:
            await connection.send(HEAD + b"Authorization: Bearer greedy\r\n\r\n")
        await other.send(HEAD + b"Authorization: Bearer other\r\n\r\n")
        await app.until_started(b"Bearer other")
        assert app.started.count(b"Bearer greedy") == 1 + UNADMITTED_MAX
        app.admit()
        while app.started.count(b"Bearer greedy") <= 1 + UNADMITTED_MAX:
            await one_iteration()


async def test_authenticated_requests_that_wait_for_their_user_delay_none_of_an_address() -> None:
    credentials = [b"Bearer %d" % number for number in range(UNADMITTED_MAX)]
    app = HeldRequests(authenticated=credentials)
    async with connected(app=app, connections=UNADMITTED_MAX + 1, connections_max=100) as made:
        *waiting, other = made
        for credential, connection in zip(credentials, waiting, strict=True):
            await connection.send(HEAD + b"Authorization: %b\r\n\r\n" % credential)
            await app.until_started(credential)
        await other.send(HEAD + b"Authorization: Bearer other\r\n\r\n")
        await app.until_started(b"Bearer other")


async def test_forged_credentials_are_those_of_one_client() -> None:
    app = HeldRequests(authenticated={b"Bearer known"})
    many = UNADMITTED_MAX + 3
    async with connected(app=app, connections=many + 2, connections_max=100) as made:
        known, *forged, last = made
        await known.send(HEAD + b"Authorization: Bearer known\r\n\r\n")
        await app.until_started(b"Bearer known")
        app.admit()
        for number, connection in enumerate(forged):
            await connection.send(HEAD + b"Authorization: Bearer %d\r\n\r\n" % number)
        await last.send(HEAD + b"Authorization: Bearer known\r\n\r\n")
        while app.started.count(b"Bearer known") < 2:
            await one_iteration()
        assert len(app.started) == 2 + UNADMITTED_MAX


class Refusals:
    """An application that answers without admitting, and counts its requests."""

    def __init__(self) -> None:
        self.started = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.started += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        # More than is sent to a client that does not read.
        for _ in range(64):
            await send({"type": "http.response.body", "body": bytes(2**20), "more_body": True})
        await send({"type": "http.response.body"})


async def test_clients_that_do_not_read_their_answers_delay_no_other_request() -> None:
    app, many = Refusals(), UNADMITTED_MAX + 3
    async with connected(app=app, connections=many, connections_max=100) as made:
        for connection in made:
            await connection.send(HEAD + b"Authorization: Bearer greedy\r\n\r\n")
        while app.started < many:
            await one_iteration()


class Kept:
    """Something that an application puts into the scope of a request."""


async def test_an_answered_request_is_freed_without_the_garbage_collector() -> None:
    kept: list[weakref.ref[Kept]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["kept"] = Kept()
        kept.append(weakref.ref(scope["kept"]))
        await greet(scope, receive, send)

    async with connected(app=app) as (connection,):
        gc.disable()
        try:
            for _ in range(2):
                await connection.send(HEAD + b"Content-Length: 0\r\n\r\n")
                assert await connection.answer() == (200, b"0")
            # A connection knows its last request.
            first, _ = kept
            assert first() is None
        finally:
            gc.enable()


class CountedRequests:
    """An application that answers, and notes the paths of its requests."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        await greet(scope, receive, send)


@pytest.mark.parametrize("leave", [socket.socket.close, shut_down_sending])
def test_a_request_whose_client_left_behind_it_is_not_run(
    leave: Callable[[socket.socket], None],
) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(paths_run_of_abandoned_requests(leave)) == ["/stays"]


async def paths_run_of_abandoned_requests(leave: Callable[[socket.socket], None]) -> list[str]:
    app, open_connections = CountedRequests(), CountedConnections(1000, address_max=1000)
    request = b"GET %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    async with (
        asyncio.timeout(20),
        serve_http(
            app,
            ANYWHERE,
            public_url=PUBLIC_URL,
            open_connections=open_connections,
            clock=SystemClock(),
        ) as address,
    ):
        with ExitStack() as kept:
            # The loop stands still meanwhile, so that it reads all of a request and its end.
            for path in (b"/left", b"/left", b"/stays"):
                client = kept.enter_context(socket.create_connection((address.host, address.port)))
                client.sendall(request % path)
                if path == b"/left":
                    leave(client)
            while open_connections.accepted < 3 or not app.paths:
                await one_iteration()
            for _ in range(10):
                await one_iteration()
    return app.paths
