"""Requests that are sent for a call after it: they do not change what is known of the call."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client

from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.http_transport import DELETE_S_MAX, http_transport
from mcpgateway.client.session import TaskSession
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Limits, Reason, Target
from mcpgateway.servers.errors import UpstreamFailed
from parley.egress import Policy
from parley.egress.transport import Identity, guarded_client
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.hostile.scripted_host import (
    ANSWERED,
    STANDING,
    Reply,
    ScriptedHost,
    scripted_host,
)
from support.mcpgateway.session_calls import sessions_to
from support.mcpgateway.values import a_server, a_target

#: The beginning of a response that can be resumed, at once.
RESUMABLE = Reply("id: 1\nretry: 1\ndata:\n\n", kind="text/event-stream; charset=utf-8")
ELICITATION: Mapping[str, Any] = {
    "method": "elicitation/create",
    "params": {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}},
}
PING: Mapping[str, Any] = {"method": "ping"}
REFUSAL = {"error": {"code": -32000, "message": "the tool failed"}}
NOT_ACCEPTED = {
    "credentials": Reply(None, 401),
    "session": Reply(None, 404),
    "failed": Reply(None, 500),
    "redirected": Reply(None, 307, headers="Location: http://other.example/mcp\r\n"),
    "cut": Reply(is_missing=True),
}


@asynccontextmanager
async def serving(
    script: Mapping[str, Reply],
) -> AsyncIterator[tuple[ScriptedHost, Sessions, Target]]:
    async with (
        asyncio.timeout(30),
        scripted_host(script) as host,
        sessions_to(host.url) as sessions,
    ):
        yield host, sessions, a_target(a_server(url=host.url, limits=Limits()))


async def called(sessions: Sessions, target: Target) -> ToolAnswer:
    return await sessions.call_tool(target, "x", b"{}", ignore_progress, cancel_question)


async def failure_of_call(sessions: Sessions, target: Target) -> UpstreamFailed:
    with pytest.raises(UpstreamFailed) as caught:
        await called(sessions, target)
    return caught.value


async def test_a_call_that_was_delivered_may_have_executed_although_it_cannot_be_resumed() -> None:
    reply = Reply(RESUMABLE.body, kind=RESUMABLE.kind, is_held=True)
    async with serving({"x": reply}) as (host, sessions, target), asyncio.TaskGroup() as tasks:
        calling = tasks.create_task(failure_of_call(sessions, target))
        await host.until_asked("x")
        host.stop_listening()
        host.released.set()

    failure = calling.result()
    assert (failure.reason, failure.may_have_executed) == (Reason.SESSION_LOST, True)
    assert host.asked == ["x"]


#: Where a server asks: in the response of the call, or in the stream beside the calls.
ASKING: Mapping[str, Mapping[str, Reply]] = {
    "response": {"x": Reply(asks=ELICITATION, is_held=True)},
    "stream": {
        "x": Reply(is_held=True),
        STANDING: Reply(asks=ELICITATION, is_held=True, after="x"),
    },
}


@pytest.mark.parametrize("name", NOT_ACCEPTED)
@pytest.mark.parametrize("where", ASKING)
async def test_a_call_ends_when_its_server_does_not_accept_what_a_person_answered(
    where: str, name: str
) -> None:
    script = {**ASKING[where], ANSWERED: NOT_ACCEPTED[name]}
    async with serving(script) as (host, sessions, target):
        failure = await failure_of_call(sessions, target)

    assert (failure.reason, failure.may_have_executed) == (Reason.PROTOCOL_ERROR, True)
    assert "it did not accept the answer to what it asked" in str(failure)
    assert (host.asked, host.opened) == (["x", ANSWERED], 1)


@pytest.mark.parametrize("name", NOT_ACCEPTED)
async def test_an_answer_to_a_ping_that_is_not_accepted_leaves_the_error_of_a_tool_as_it_is(
    name: str,
) -> None:
    script = {"x": Reply(REFUSAL, asks=PING, is_held=True), ANSWERED: NOT_ACCEPTED[name]}
    async with serving(script) as (host, sessions, target), asyncio.TaskGroup() as tasks:
        calling = tasks.create_task(called(sessions, target))
        await host.until_asked(ANSWERED)
        host.released.set()

    assert calling.result() == ToolAnswer(True, (TextPart("the tool failed"),))
    assert host.asked == ["x", ANSWERED]


async def test_a_session_ends_although_its_server_does_not_answer_that_it_is_deleted() -> None:
    async with (
        asyncio.timeout(10 * DELETE_S_MAX),
        scripted_host({}) as host,
        guarded_client(
            Policy().with_url(host.url), response_bytes_max=4096, timeout=httpx2.Timeout(None)
        ) as http,
        asyncio.TaskGroup() as tasks,
    ):
        host.deleting = Reply(None, is_held=True)
        session = TaskSession(
            lambda: Client(http_transport(host.url, http, 4096), mode="legacy"),
            Identity.at(host.url, {}),
            limit_ms=20_000,
            now=0,
        )
        tasks.create_task(session.run_client())
        await session.opened()
        session.stop()
        await session.ended.wait()
        assert (host.deleted, host.released.is_set()) == (["session-1"], False)
