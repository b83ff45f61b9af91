"""The older transport against a server that breaks its rules, each time for one call only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp.client._transport import ReadStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from mcpgateway.client.content import StructuredPart, TextPart, ToolAnswer
from mcpgateway.client.error_answers import NoAnswer
from mcpgateway.client.received import CALL_EXCHANGE
from mcpgateway.client.sessions import Sessions
from mcpgateway.client.sse_transport import sse_transport
from mcpgateway.servers.domain import Limits, Reason, Target, Transport
from mcpgateway.servers.errors import UpstreamFailed
from parley.egress import Policy
from parley.egress.transport import EXCHANGE, IDENTITY, Exchange, Identity, guarded_client
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.session_calls import sessions_to
from support.mcpgateway.stream_server import ANSWERED, FAILED, StreamServer, stream_server
from support.mcpgateway.values import a_server, a_target

SAID = ToolAnswer(False, (TextPart("said"),))
EVENT_BYTES_MAX = 1024 * 1024


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[StreamServer, Sessions, Target]]:
    async with asyncio.timeout(30), stream_server() as server, sessions_to(server.url) as sessions:
        limits = Limits(result_bytes_max=EVENT_BYTES_MAX)
        made = a_server(url=server.url, transport=Transport.SSE, limits=limits)
        yield server, sessions, a_target(made)


async def called(sessions: Sessions, target: Target, tool: str) -> ToolAnswer:
    return await sessions.call_tool(target, tool, b"{}", ignore_progress, cancel_question)


async def test_a_post_that_is_left_open_holds_up_no_other_call() -> None:
    async with serving() as (server, sessions, target), asyncio.TaskGroup() as tasks:
        silent = tasks.create_task(called(sessions, target, "silent"))
        await server.until_received("silent")
        answer = await called(sessions, target, "echo")
        silent.cancel()
        await server.until_received("notifications/cancelled")
        # Its connection is given back.
        await server.given_up.wait()
        after = await called(sessions, target, "echo")

    assert (answer, after, silent.cancelled(), server.opened) == (SAID, SAID, True, 1)


async def test_calls_are_answered_whose_posts_are_left_open() -> None:
    async with serving() as (server, sessions, target):
        answers = [await called(sessions, target, "open") for _ in range(3)]

    assert (answers, server.opened) == ([SAID] * 3, 1)


async def test_progress_that_is_too_large_a_number_ends_no_call() -> None:
    async with serving() as (server, sessions, target), asyncio.TaskGroup() as tasks:
        silent = tasks.create_task(called(sessions, target, "silent"))
        await server.until_received("silent")
        answers = [await called(sessions, target, tool) for tool in ("progress", "echo")]
        is_ended = silent.done()
        silent.cancel()

    assert (answers, is_ended, server.opened) == ([SAID, SAID], False, 1)


async def test_no_request_comes_before_the_session_is_initialized() -> None:
    async with serving() as (server, sessions, target):
        await called(sessions, target, "echo")

    assert [each for each in server.received if each != "server/discover"] == [
        "initialize",
        "notifications/initialized",
        "echo",
    ]


async def test_a_stream_that_ends_during_a_post_ends_the_call_at_once() -> None:
    async with serving() as (server, sessions, target):
        with pytest.raises(UpstreamFailed) as caught:
            await called(sessions, target, "ending")
        after = await called(sessions, target, "echo")

    failure = caught.value
    assert (failure.reason, failure.may_have_executed) == (Reason.SESSION_LOST, True)
    assert (after, server.received.count("ending"), server.opened) == (SAID, 1, 2)


def client_of(server: StreamServer) -> httpx2.AsyncClient:
    policy, limit = Policy().with_url(server.url), httpx2.Timeout(10)
    IDENTITY.set(Identity.at(server.url, {}))
    return guarded_client(policy, response_bytes_max=EVENT_BYTES_MAX, timeout=limit)


@asynccontextmanager
async def posted(
    server: StreamServer, tool: str
) -> AsyncIterator[ReadStream[SessionMessage | Exception]]:
    """Post a call of a tool, and yield the stream of answers."""
    http = client_of(server)
    params = {"name": tool, "arguments": {}}
    call = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params=params)
    async with sse_transport(server.url, http, EVENT_BYTES_MAX) as (answered, requests):
        await requests.send(SessionMessage(call))
        yield answered


async def ended_posts(server: StreamServer) -> list[BaseException | None]:
    """Let the server end the posts that it left open; return what became of them."""
    posts = {task for task in asyncio.all_tasks() if is_post(task)}
    server.refusing.set()
    await asyncio.wait(posts)
    return [post.exception() for post in posts]


async def test_a_post_that_is_refused_after_the_stream_ended_raises_nothing() -> None:
    async with (
        asyncio.timeout(30),
        stream_server() as server,
        posted(server, "refused") as answered,
    ):
        received = [each async for each in answered]
        ended = await ended_posts(server)

    assert (received, ended) == ([], [None])


async def test_a_post_that_is_cut_after_its_answer_came_does_not_end_the_call() -> None:
    exchange = Exchange()
    EXCHANGE.set(exchange)
    async with asyncio.timeout(30), stream_server() as server, posted(server, "late") as answered:
        await answered.receive()
        ended = await ended_posts(server)

    assert (ended, exchange.is_sent, exchange.error) == ([None], True, None)


#: How a server may not accept what a person answered.
NOT_ACCEPTED = {
    "credentials": b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "session": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "failed": FAILED,
    "cut": b"",
}


async def test_a_person_answers_what_a_server_asks_during_a_call() -> None:
    async with serving() as (server, sessions, target):
        answer = await called(sessions, target, "asking")

    assert (answer, server.received.count(ANSWERED), server.opened) == (SAID, 1, 1)


@pytest.mark.parametrize("name", NOT_ACCEPTED)
async def test_a_call_ends_when_its_server_does_not_accept_what_a_person_answered(
    name: str,
) -> None:
    async with serving() as (server, sessions, target):
        server.answering = NOT_ACCEPTED[name]
        failure = await failure_of(sessions, target, "asking")
        after = await called(sessions, target, "echo")

    assert (failure.reason, failure.may_have_executed) == (Reason.PROTOCOL_ERROR, True)
    assert "it did not accept the answer to what it asked" in str(failure)
    assert (after, server.opened, server.received.count("asking")) == (SAID, 1, 1)


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (b"", None),
        (b"HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\n", None),
        (b"HTTP/1.1 500 Failed\r\nContent-Length: 9\r\n\r\n", NoAnswer),
    ],
)
async def test_a_post_of_an_answer_that_is_left_open_ends_the_call_only_if_it_is_refused(
    response: bytes, error: type[Exception] | None
) -> None:
    exchange = Exchange()
    CALL_EXCHANGE.set(exchange)
    answer = JSONRPCResponse(jsonrpc="2.0", id="asked-1", result={"action": "cancel"})
    async with asyncio.timeout(30), stream_server() as server:
        server.answering, server.is_answering_long = response, True
        async with sse_transport(server.url, client_of(server), EVENT_BYTES_MAX, 1.0) as streams:
            await streams[1].send(SessionMessage(answer))
            await server.until_received(ANSWERED)
            await server.given_up.wait()
            for post in filter(is_post, asyncio.all_tasks()):
                await post

    assert (type(exchange.error) if exchange.error else None) == error


def is_post(task: "asyncio.Task[object]") -> bool:
    return getattr(task.get_coro(), "__qualname__", "") == "_Poster.post"


async def test_an_answer_that_cannot_be_read_fails_its_own_call_only() -> None:
    async with serving() as (server, sessions, target), asyncio.TaskGroup() as tasks:
        silent = tasks.create_task(called(sessions, target, "silent"))
        await server.until_received("silent")
        unreadable = await failure_of(sessions, target, "unreadable")
        answer = await called(sessions, target, "echo")
        silent.cancel()

    assert (unreadable.reason, unreadable.may_have_executed) == (Reason.PROTOCOL_ERROR, True)
    assert (answer, server.opened) == (SAID, 1)


async def failure_of(sessions: Sessions, target: Target, tool: str) -> UpstreamFailed:
    with pytest.raises(UpstreamFailed) as caught:
        await called(sessions, target, tool)
    return caught.value


async def test_a_post_that_is_refused_or_cut_fails_its_own_call_only() -> None:
    async with serving() as (server, sessions, target), asyncio.TaskGroup() as tasks:
        silent = tasks.create_task(called(sessions, target, "silent"))
        await server.until_received("silent")
        refused = await called(sessions, target, "refusing")
        cut = await failure_of(sessions, target, "cut")
        answer = await called(sessions, target, "echo")
        assert not silent.done()
        silent.cancel()

    assert refused == ToolAnswer(True, (TextPart("no such thing"),))
    assert (cut.reason, cut.may_have_executed) == (Reason.SESSION_LOST, True)
    assert (answer, server.opened) == (SAID, 1)


async def test_an_event_that_is_too_large_is_blamed_on_a_call_only_if_it_is_the_only_one() -> None:
    async with serving() as (server, sessions, target):
        alone = await failure_of(sessions, target, "large")
        async with asyncio.TaskGroup() as tasks:
            silent = tasks.create_task(failure_of(sessions, target, "silent"))
            await server.until_received("silent")
            beside = await failure_of(sessions, target, "large")
        after = await called(sessions, target, "echo")

    # Beside another call it is not known whose answer was too large, and both may have run.
    failures = (alone, beside, silent.result())
    assert [failure.reason for failure in failures] == [
        Reason.RESULT_TOO_LARGE,
        Reason.SESSION_LOST,
        Reason.SESSION_LOST,
    ]
    assert [failure.may_have_executed for failure in failures] == [True] * 3
    assert after == SAID


async def test_what_cannot_be_read_is_left_out_of_listings_and_results() -> None:
    async with serving() as (_, sessions, target):
        catalogue = await sessions.list_tools(target)
        answer = await called(sessions, target, "deep")

    assert (list(catalogue.tools), catalogue.dropped) == (["echo"], 3)
    text, structured = answer.parts
    assert (text, answer.is_error) == (TextPart("said"), False)
    assert isinstance(structured, StructuredPart)
    assert b"null" in structured.json
