"""Sessions with real MCP servers: today's, one that keeps sessions, and broken ones."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from mcpgateway.client.call import Progress
from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Limits, Reason, Target, Transport
from mcpgateway.servers.errors import UpstreamFailed
from parley.egress import Policy
from support.host.ports import free_port
from support.host.supervised import supervision
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.servers import (
    demo_process,
    kind_process,
    raw_server,
    session_process,
    until_listening,
)
from support.mcpgateway.session_calls import (
    KINDS,
    Seen,
    counted,
    failure_of,
    place_of,
    sessions_to,
)
from support.mcpgateway.values import a_server, a_target

SUM = b'{"a":1,"b":2}'
#: More than the connections that one client had.
USERS = 110
ADDED = ToolAnswer(False, (TextPart("3"),))


@asynccontextmanager
async def session_server(port: int, transport: str = "mcp") -> AsyncIterator[None]:
    with session_process(port, transport):
        await until_listening(port)
        yield


def target_of(url: str, *, user_id: str = "ann", **settings: Any) -> Target:
    return a_target(a_server(url=url, **settings), user_id=user_id)


async def test_the_demo_server_tells_the_time(demo_url: str) -> None:
    async with sessions_to(demo_url) as sessions:
        target = target_of(demo_url)
        catalogue = await sessions.list_tools(target)
        answer = await sessions.call_tool(
            target,
            "get_current_time",
            b'{"timezone":"Europe/Berlin"}',
            ignore_progress,
            cancel_question,
        )

    (part,) = answer.parts
    assert set(catalogue.tools) == {"get_current_time", "convert_time"}
    assert catalogue.tools["get_current_time"].hints.read_only
    assert isinstance(part, TextPart)
    assert msgspec.json.decode(part.text)["timezone"] == "Europe/Berlin"


async def test_a_tools_own_error_and_an_unknown_tool_are_answers(demo_url: str) -> None:
    async with sessions_to(demo_url) as sessions:
        target = target_of(demo_url)
        wrong = await sessions.call_tool(
            target, "get_current_time", b'{"timezone":"Nowhere"}', ignore_progress, cancel_question
        )
        unknown = await sessions.call_tool(target, "nope", b"{}", ignore_progress, cancel_question)
        missing = await sessions.call_tool(
            target, "get_current_time", b"{}", ignore_progress, cancel_question
        )

    assert (wrong.is_error, missing.is_error) == (True, True)
    assert unknown == ToolAnswer(True, (TextPart("Unknown tool: nope"),))


async def test_a_server_with_sessions_is_met_once_per_user() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with session_server(port), sessions_to(url) as sessions:
        for user_id in ("ann", "ann", "bob"):
            answer = await sessions.call_tool(
                target_of(url, user_id=user_id), "add", SUM, ignore_progress, cancel_question
            )
            assert answer == ADDED
        met = [await counted(sessions, target_of(url), what) for what in ("discover", "sessions")]

    assert met == [1, 2]


async def test_every_session_is_deleted_at_its_server_when_it_is_closed() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with session_server(port):
        for _ in range(10):
            async with sessions_to(url) as sessions:
                for user_id in ("ann", "bob"):
                    target = target_of(url, user_id=user_id)
                    await sessions.call_tool(target, "add", SUM, ignore_progress, cancel_question)
        async with sessions_to(url) as sessions:
            left = [
                await counted(sessions, target_of(url), what) for what in ("sessions", "deleted")
            ]

    assert left == [21, 20]


@pytest.mark.parametrize("kind", KINDS)
async def test_progress_arrives_and_cancelling_reaches_the_server(kind: str) -> None:
    port = free_port()
    url, transport = place_of(kind, port)
    seen, other = Seen(), Seen()
    with kind_process(port, kind):
        await until_listening(port)
        async with sessions_to(url) as sessions, asyncio.TaskGroup() as tasks:
            target = target_of(url, transport=transport)
            waiting, going_on = (
                tasks.create_task(
                    sessions.call_tool(target, "hold", b"{}", each.note, cancel_question)
                )
                for each in (seen, other)
            )
            await seen.first.wait()
            await other.first.wait()
            waiting.cancel()
            while await counted(sessions, target, "cancelled") == 0:
                continue
            answer = await sessions.call_tool(target, "add", SUM, ignore_progress, cancel_question)
            # Another call of the same session goes on.
            assert not going_on.done()
            assert await counted(sessions, target, "cancelled") == 1
            await sessions.call_tool(target, "release", b"{}", ignore_progress, cancel_question)

    assert (seen.all, answer) == ([Progress(1, 2, "half")], ADDED)
    assert going_on.result() == ToolAnswer(False, (TextPart("released"),))


async def test_a_refused_request_ends_no_other_call_of_its_session() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    seen = Seen()
    async with session_server(port), sessions_to(url) as sessions:
        target = target_of(url)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(
                sessions.call_tool(target, "wait", b"{}", seen.note, cancel_question)
            )
            await seen.first.wait()
            opened = await counted(sessions, target, "sessions")
            with pytest.raises(UpstreamFailed) as refused:
                await sessions.read_resource(target, "memo://nothing")
            # The same session answers, and the other call goes on in it.
            answer = await sessions.call_tool(target, "add", SUM, ignore_progress, cancel_question)
            left = [await counted(sessions, target, what) for what in ("sessions", "cancelled")]
            assert not running.done()
            running.cancel()

    assert (refused.value.reason, answer, left) == (Reason.REQUEST_REFUSED, ADDED, [opened, 0])


@pytest.mark.slow
async def test_more_users_than_connections_are_kept_idle_have_sessions_at_once() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    targets = [target_of(url, user_id=f"user-{number}") for number in range(USERS)]
    async with session_server(port), sessions_to(url) as sessions:

        async def add(target: Target) -> ToolAnswer:
            return await sessions.call_tool(target, "add", SUM, ignore_progress, cancel_question)

        # Each session keeps a stream open, which must not take the place of calls.
        for first in range(0, USERS, 20):
            async with asyncio.TaskGroup() as tasks:
                for target in targets[first : first + 20]:
                    tasks.create_task(add(target))
        answers = [await add(target) for target in targets]
        met = await counted(sessions, targets[0], "sessions")

    assert (answers, met) == ([ADDED] * USERS, USERS)


async def test_the_sessions_of_a_user_who_is_gone_are_closed() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with session_server(port), sessions_to(url) as sessions:
        for user_id in ("ann", "bob"):
            await sessions.call_tool(
                target_of(url, user_id=user_id), "add", SUM, ignore_progress, cancel_question
            )
        sessions.forget_user("ann")
        bob = target_of(url, user_id="bob")
        while await counted(sessions, bob, "deleted") == 0:
            continue
        left = [await counted(sessions, bob, what) for what in ("sessions", "deleted")]

    assert left == [2, 1]


async def test_the_session_of_a_login_that_was_given_up_is_closed_at_its_server_only() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with session_server(port), sessions_to(url) as sessions:
        ann, bob = target_of(url), target_of(url, user_id="bob")
        for target in (ann, bob):
            await sessions.call_tool(target, "add", SUM, ignore_progress, cancel_question)
        sessions.forget_user("bob", "another server")
        sessions.forget_user("ann", ann.server.id)
        while await counted(sessions, bob, "deleted") == 0:
            continue
        left = [await counted(sessions, bob, what) for what in ("sessions", "deleted")]

    assert left == [2, 1]


async def test_a_server_that_forgot_its_sessions_is_met_again() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with sessions_to(url) as sessions:
        target = target_of(url)
        async with session_server(port):
            before = await sessions.call_tool(target, "add", SUM, ignore_progress, cancel_question)
        async with session_server(port):
            after = await sessions.call_tool(target, "add", SUM, ignore_progress, cancel_question)

    assert (before, after) == (ADDED, ADDED)


async def test_the_older_transport_works_too() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/sse"
    async with session_server(port, "sse"), sessions_to(url) as sessions:
        target = target_of(url, transport=Transport.SSE)
        catalogue = await sessions.list_tools(target)
        answer = await sessions.call_tool(target, "add", SUM, ignore_progress, cancel_question)

    assert (set(catalogue.tools), answer) == ({"add", "count", "repeat", "wait"}, ADDED)


@pytest.mark.parametrize("transport", ["mcp", "sse"])
async def test_a_server_with_sessions_killed_during_a_call_leaves_its_effect_unknown(
    transport: str,
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/{transport}"
    kind = Transport.SSE if transport == "sse" else Transport.STREAMABLE_HTTP
    seen = Seen()
    with session_process(port, transport) as process:
        await until_listening(port)
        async with sessions_to(url) as sessions:
            target = target_of(url, transport=kind)
            async with asyncio.TaskGroup() as tasks:
                failing = tasks.create_task(failure_of(sessions, target, "wait", seen))
                await seen.first.wait()
                process.kill()

    failure = failing.result()
    assert (failure.reason, failure.may_have_executed) == (Reason.SESSION_LOST, True)


async def test_a_server_that_hangs_up_during_a_call_leaves_its_effect_unknown() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    calls: list[bytes] = []

    def hang_up(request: bytes) -> bytes | None:
        if b'"tools/call"' not in request:
            return DISCOVERED
        calls.append(request)
        return None

    async with raw_server(port, hang_up), sessions_to(url) as sessions:
        failure = await failure_of(sessions, target_of(url), "add", Seen())

    assert len(calls) == 1
    assert (failure.reason, failure.may_have_executed) == (Reason.SESSION_LOST, True)


@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
async def test_a_compressed_answer_is_refused_and_not_unpacked(kind: bytes) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    bomb = gzip.compress(BODY + b" " * 1_000_000)

    def explode(request: bytes) -> bytes:
        if b'"tools/call"' not in request:
            return DISCOVERED
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: " + kind
        return head + b"\r\nContent-Length: %d\r\n\r\n%s" % (len(bomb), bomb)

    async with raw_server(port, explode), sessions_to(url) as sessions:
        failure = await failure_of(sessions, target_of(url), "add", Seen())

    assert (failure.reason, failure.may_have_executed) == (Reason.PROTOCOL_ERROR, True)
    assert "gzip" in str(failure)


async def test_the_next_call_after_a_restart_succeeds() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    arguments = b'{"timezone":"UTC"}'
    async with sessions_to(url) as sessions:
        with demo_process(port):
            await until_listening(port)
            await sessions.call_tool(
                target_of(url), "get_current_time", arguments, ignore_progress, cancel_question
            )
        with pytest.raises(UpstreamFailed) as caught:
            await sessions.call_tool(
                target_of(url), "get_current_time", arguments, ignore_progress, cancel_question
            )
        with demo_process(port):
            await until_listening(port)
            answer = await sessions.call_tool(
                target_of(url), "get_current_time", arguments, ignore_progress, cancel_question
            )

    assert (caught.value.reason, caught.value.may_have_executed) == (Reason.CONNECT_FAILED, False)
    assert not answer.is_error


async def test_a_server_that_never_answers_times_out() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    target = target_of(url, limits=Limits(connect_timeout_ms=100))

    async with raw_server(port, lambda _: b""), sessions_to(url) as sessions:
        with pytest.raises(UpstreamFailed) as caught:
            await sessions.list_tools(target)

    assert caught.value.reason is Reason.CONNECT_TIMEOUT


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (b"401 Unauthorized", Reason.MISCONFIGURED),
        (b"404 Not Found", Reason.MISCONFIGURED),
        (b"429 Too Many Requests", Reason.RATE_LIMITED),
        (b"503 Service Unavailable", Reason.CONNECT_FAILED),
    ],
)
@pytest.mark.parametrize("kind", ["mcp", "sse"])
async def test_a_refusal_by_status_says_why(status: bytes, reason: Reason, kind: str) -> None:
    port = free_port()
    url, transport = place_of(kind, port)
    response = b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"

    async with raw_server(port, lambda _: response), sessions_to(url) as sessions:
        with pytest.raises(UpstreamFailed) as caught:
            await sessions.list_tools(target_of(url, transport=transport))

    assert caught.value.reason is reason


async def test_loopback_is_refused_unless_it_is_named(demo_url: str) -> None:
    async with Sessions.open(Policy(), supervision()) as sessions:
        with pytest.raises(UpstreamFailed) as caught:
            await sessions.list_tools(target_of(demo_url))

    assert caught.value.reason is Reason.ADDRESS_BLOCKED


async def test_a_name_that_resolves_to_loopback_is_refused_over_tls() -> None:
    async with Sessions.open(Policy(), supervision()) as sessions:
        with pytest.raises(UpstreamFailed) as caught:
            await sessions.list_tools(target_of("https://localhost:1/mcp"))

    assert caught.value.reason is Reason.ADDRESS_BLOCKED


BODY = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "public",
        },
    }
)
DISCOVERED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
    % (len(BODY), BODY)
)
