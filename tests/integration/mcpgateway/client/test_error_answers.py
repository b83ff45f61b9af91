"""Error responses of servers: refusals in their words, asked for once, whatever their form."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mcpgateway.client.breaker import FAILURES_MAX
from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Reason, Target
from mcpgateway.servers.errors import UpstreamFailed
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.hostile.scripted_host import (
    EVENTS,
    JSON,
    Reply,
    ScriptedHost,
    error_reply,
    scripted_host,
)
from support.mcpgateway.session_calls import sessions_to
from support.mcpgateway.values import a_server, a_target

SAID = ToolAnswer(False, (TextPart("said"),))
UNKNOWN = "no such thing here"
#: HTTP status, JSON-RPC code and media type of error responses.
ERRORS = [
    *((200, code, kind) for code in (-32602, -32601, -32002, 0, -32603) for kind in (JSON, EVENTS)),
    # The SDK uses the first two codes itself, for connections that end and responses without sense.
    (200, -32000, JSON),
    (200, -32600, EVENTS),
    (200, 4711, JSON),
    (400, -32602, JSON),
    (400, -32603, JSON),
    (404, -32601, JSON),
    (404, -32002, JSON),
    (409, 0, JSON),
    (422, -32000, JSON),
    (500, -32603, JSON),
    (503, -32000, JSON),
]
MODERN_OR_NOT = pytest.mark.parametrize("is_modern", [True, False], ids=["modern", "sessions"])


@asynccontextmanager
async def serving(
    reply: Reply, *, is_modern: bool
) -> AsyncIterator[tuple[ScriptedHost, Sessions, Target]]:
    """Serve one reply for everything that is called `x`."""
    async with (
        asyncio.timeout(60),
        scripted_host({"x": reply}, is_modern=is_modern) as host,
        sessions_to(host.url) as sessions,
    ):
        yield host, sessions, a_target(a_server(url=host.url))


async def called(sessions: Sessions, target: Target, tool: str) -> ToolAnswer:
    return await sessions.call_tool(target, tool, b"{}", ignore_progress, cancel_question)


async def refusal_of_prompt(sessions: Sessions, target: Target) -> UpstreamFailed:
    with pytest.raises(UpstreamFailed) as caught:
        await sessions.get_prompt(target, "x", {})
    return caught.value


@MODERN_OR_NOT
@pytest.mark.parametrize(("status", "code", "kind"), ERRORS)
async def test_an_error_response_is_a_refusal_and_its_request_is_sent_once(
    status: int, code: int, kind: str, is_modern: bool
) -> None:
    reply = error_reply(status, code, UNKNOWN, kind)
    async with serving(reply, is_modern=is_modern) as (host, sessions, target):
        failure = await refusal_of_prompt(sessions, target)
        with pytest.raises(UpstreamFailed) as caught:
            await sessions.read_resource(target, "x")
        answer = await called(sessions, target, "echo")

    assert (failure.reason, caught.value.reason) == (Reason.REQUEST_REFUSED,) * 2
    assert str(failure) == str(caught.value) == f"the server refuses: {UNKNOWN}"
    assert (host.asked, answer) == (["x", "x", "echo"], SAID)
    assert host.opened == (0 if is_modern else 1)


@MODERN_OR_NOT
@pytest.mark.parametrize(("status", "code", "kind"), ERRORS)
async def test_an_error_response_to_a_call_is_the_answer_of_its_tool(
    status: int, code: int, kind: str, is_modern: bool
) -> None:
    reply = error_reply(status, code, UNKNOWN, kind)
    async with serving(reply, is_modern=is_modern) as (host, sessions, target):
        answer = await called(sessions, target, "x")
        after = await called(sessions, target, "echo")

    assert answer == ToolAnswer(True, (TextPart(UNKNOWN),))
    assert (host.asked, after, host.opened) == (["x", "echo"], SAID, 0 if is_modern else 1)


async def test_an_error_about_a_session_of_a_tool_is_the_answer_of_the_tool() -> None:
    crashed = "the browser session crashed"
    async with serving(error_reply(400, -32000, crashed), is_modern=False) as served:
        host, sessions, target = served
        answer = await called(sessions, target, "x")

    assert answer == ToolAnswer(True, (TextPart(crashed),))
    assert (host.asked, host.opened) == (["x"], 1)


@MODERN_OR_NOT
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (error_reply(401, -32602, UNKNOWN), Reason.MISCONFIGURED),
        (error_reply(403, -32602, UNKNOWN), Reason.MISCONFIGURED),
        (error_reply(429, -32000, UNKNOWN), Reason.RATE_LIMITED),
        (Reply("<html>bad gateway</html>", 502, "text/html"), Reason.SESSION_LOST),
        (Reply('{"error":{"code":500,"message":"down"}}', 503), Reason.SESSION_LOST),
        (Reply('{"jsonrpc":"2.0","id":1,"error":"down"}', 500), Reason.SESSION_LOST),
        (Reply("[" * 20_000, 500), Reason.SESSION_LOST),
        (Reply(None, 400), Reason.PROTOCOL_ERROR),
        (Reply("said", 200, "text/plain"), Reason.PROTOCOL_ERROR),
        (Reply("no JSON"), Reason.PROTOCOL_ERROR),
        (Reply(None, 202), Reason.PROTOCOL_ERROR),
    ],
)
async def test_a_response_without_an_error_of_the_protocol_is_no_refusal(
    reply: Reply, reason: Reason, is_modern: bool
) -> None:
    async with serving(reply, is_modern=is_modern) as (host, sessions, target):
        failure = await refusal_of_prompt(sessions, target)
        answer = await called(sessions, target, "echo")

    assert (failure.reason, host.asked, answer) == (reason, ["x", "echo"], SAID)


@MODERN_OR_NOT
@pytest.mark.parametrize(
    "reply",
    [Reply("said", 200, "text/plain"), Reply("no JSON"), Reply("no JSON", kind=EVENTS)],
    ids=["text", "JSON", "events"],
)
async def test_a_response_to_a_call_that_cannot_be_read_is_not_the_answer_of_its_tool(
    reply: Reply, is_modern: bool
) -> None:
    async with serving(reply, is_modern=is_modern) as (host, sessions, target):
        with pytest.raises(UpstreamFailed) as caught:
            await called(sessions, target, "x")
        after = await called(sessions, target, "echo")

    failure = caught.value
    assert (failure.reason, failure.may_have_executed) == (Reason.PROTOCOL_ERROR, True)
    assert (host.asked, after, host.opened) == (["x", "echo"], SAID, 0 if is_modern else 1)


async def test_the_words_of_a_server_are_shown_without_hidden_characters_and_cut() -> None:
    hidden = "no\u200b such\u202e\x1b[31m thing \U000e0041" + "y" * 100_000
    async with serving(error_reply(400, -32602, hidden), is_modern=True) as (_, sessions, target):
        failure = await refusal_of_prompt(sessions, target)

    assert str(failure).startswith("the server refuses: no such[31m thing yyy")
    assert len(str(failure)) == 1024


@MODERN_OR_NOT
async def test_refusals_are_no_outage_however_many_there_are(is_modern: bool) -> None:
    reply = error_reply(500, -32603, UNKNOWN)
    async with serving(reply, is_modern=is_modern) as (_, sessions, target):
        reasons = [
            (await refusal_of_prompt(sessions, target)).reason for _ in range(2 * FAILURES_MAX)
        ]

    assert reasons == [Reason.REQUEST_REFUSED] * (2 * FAILURES_MAX)


@MODERN_OR_NOT
async def test_a_server_without_a_method_has_no_prompts_but_a_missing_page_is_a_failure(
    is_modern: bool,
) -> None:
    script = {
        "prompts/list": error_reply(404, -32601, "Method not found"),
        "resources/list": Reply(None, 404),
    }
    async with (
        asyncio.timeout(60),
        scripted_host(script, is_modern=is_modern) as host,
        sessions_to(host.url) as sessions,
    ):
        target = a_target(a_server(url=host.url))
        prompts = await sessions.list_prompts(target)
        with pytest.raises(UpstreamFailed) as caught:
            await sessions.list_resources(target)

    # With sessions the server could have forgotten this one, so another is opened, once.
    expected = Reason.MISCONFIGURED if is_modern else Reason.SESSION_LOST
    assert (prompts, caught.value.reason) == ((), expected)
    assert host.opened == (0 if is_modern else 2)
