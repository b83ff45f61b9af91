"""A request that fails does so alone: the session and its other calls go on."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Limits, Reason, Target
from mcpgateway.servers.errors import UpstreamFailed
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.hostile.scripted_host import (
    EVENTS,
    Reply,
    ScriptedHost,
    error_reply,
    scripted_host,
)
from support.mcpgateway.session_calls import sessions_to
from support.mcpgateway.values import a_server, a_target

SAID = ToolAnswer(False, (TextPart("said"),))
HELD = Reply(is_held=True)
LARGE = {"result": {"content": [{"type": "text", "text": "x" * 9_000_000}]}}
FAILURES: Mapping[str, tuple[Reply, Reason]] = {
    "cut": (Reply(is_cut=True), Reason.SESSION_LOST),
    "cut events": (Reply(kind=EVENTS, is_cut=True), Reason.SESSION_LOST),
    "no response": (Reply(is_missing=True), Reason.SESSION_LOST),
    "failed": (Reply(None, 502), Reason.SESSION_LOST),
    "too large": (Reply(LARGE), Reason.RESULT_TOO_LARGE),
    "too large event": (Reply(LARGE, kind=EVENTS), Reason.RESULT_TOO_LARGE),
    "compressed": (Reply(headers="Content-Encoding: gzip\r\n"), Reason.PROTOCOL_ERROR),
    "limited": (Reply(None, 429), Reason.RATE_LIMITED),
    "not allowed": (Reply(None, 403), Reason.MISCONFIGURED),
}
#: How servers say that they do not know a session.
FORGETTING = [
    Reply(None, 404),
    error_reply(404, -32600, "Session not found"),
    error_reply(404, -32001, "Session not found"),
    error_reply(400, -32000, "Bad Request: No valid session ID provided"),
    error_reply(400, -32000, "Bad Request: Server not initialized"),
    error_reply(400, -32600, "Bad Request: Missing session ID"),
]


@asynccontextmanager
async def serving(
    script: Mapping[str, Reply], *, is_modern: bool = False
) -> AsyncIterator[tuple[ScriptedHost, Sessions, Target]]:
    async with (
        asyncio.timeout(60),
        scripted_host({"held": HELD, **script}, is_modern=is_modern) as host,
        sessions_to(host.url) as sessions,
    ):
        limits = Limits(result_bytes_max=1024)
        yield host, sessions, a_target(a_server(url=host.url, limits=limits))


async def called(sessions: Sessions, target: Target, tool: str) -> ToolAnswer:
    return await sessions.call_tool(target, tool, b"{}", ignore_progress, cancel_question)


@pytest.mark.parametrize("is_modern", [True, False], ids=["modern", "sessions"])
@pytest.mark.parametrize("name", FAILURES)
async def test_a_call_that_fails_ends_no_other_call_and_no_session(
    name: str, is_modern: bool
) -> None:
    reply, reason = FAILURES[name]
    async with (
        serving({"x": reply}, is_modern=is_modern) as (host, sessions, target),
        asyncio.TaskGroup() as tasks,
    ):
        held = [tasks.create_task(called(sessions, target, "held")) for _ in range(2)]
        await host.until_asked("held")
        with pytest.raises(UpstreamFailed) as caught:
            await called(sessions, target, "x")
        after = await called(sessions, target, "echo")
        assert not any(task.done() for task in held)
        host.released.set()

    assert (caught.value.reason, after) == (reason, SAID)
    assert [task.result() for task in held] == [SAID, SAID]
    assert (host.opened, host.asked.count("x")) == (0 if is_modern else 1, 1)


@pytest.mark.parametrize(
    "notice",
    [Reply(None, 202), Reply(None, 202, is_held=True), Reply(is_missing=True)],
    ids=["accepted", "not answered", "cut"],
)
async def test_a_call_that_is_given_up_ends_no_other_call_and_no_session(notice: Reply) -> None:
    async with (
        serving({"x": HELD, "notifications/cancelled": notice}) as (host, sessions, target),
        asyncio.TaskGroup() as tasks,
    ):
        held = tasks.create_task(called(sessions, target, "held"))
        given_up = tasks.create_task(called(sessions, target, "x"))
        await host.until_asked("held")
        await host.until_asked("x")
        given_up.cancel()
        after = await called(sessions, target, "echo")
        assert not held.done()
        host.released.set()

    assert (held.result(), after, given_up.cancelled(), host.opened) == (SAID, SAID, True, 1)


@pytest.mark.parametrize("forgetting", FORGETTING, ids=lambda each: f"{each.status}-{each.body}")
async def test_calls_of_a_session_that_is_replaced_get_their_own_answers(
    forgetting: Reply,
) -> None:
    async with (
        serving({}) as (host, sessions, target),
        asyncio.TaskGroup() as tasks,
    ):
        host.forgetting = forgetting
        held = tasks.create_task(called(sessions, target, "held"))
        await host.until_asked("held")
        host.forgotten.add("session-1")
        after = [await called(sessions, target, "echo") for _ in range(2)]
        assert not held.done()
        host.released.set()

    assert (held.result(), after) == (SAID, [SAID, SAID])
    # The forgotten session is left, and the other one is used by both calls.
    assert (host.opened, host.asked) == (2, ["held", "echo", "echo"])


async def test_a_call_is_not_made_again_for_an_error_about_a_session_that_its_tool_may_have() -> (
    None
):
    reply = error_reply(400, -32000, "the browser session expired")
    async with serving({"x": reply}) as (host, sessions, target):
        with pytest.raises(UpstreamFailed) as caught:
            await called(sessions, target, "x")
        after = await called(sessions, target, "echo")

    failure = caught.value
    assert (failure.reason, failure.may_have_executed) == (Reason.SESSION_LOST, True)
    assert (host.asked, host.opened, after) == (["x", "echo"], 2, SAID)


async def test_a_session_that_is_replaced_is_deleted_after_its_last_call() -> None:
    async with serving({"x": Reply(None, 400)}) as (host, sessions, target):
        async with asyncio.TaskGroup() as tasks:
            held = tasks.create_task(called(sessions, target, "held"))
            await host.until_asked("held")
            with pytest.raises(UpstreamFailed):
                await called(sessions, target, "x")
            after = await called(sessions, target, "echo")
            deleted_before = list(host.deleted)
            host.released.set()
        await host.until_deleted("session-1")

    assert (held.result(), after, deleted_before, host.opened) == (SAID, SAID, [], 2)


async def test_a_user_who_is_gone_loses_a_session_that_was_replaced_too() -> None:
    async with (
        serving({"x": Reply(None, 400)}) as (host, sessions, target),
        asyncio.TaskGroup() as tasks,
    ):
        held = tasks.create_task(failure_of_held(sessions, target))
        await host.until_asked("held")
        with pytest.raises(UpstreamFailed):
            await called(sessions, target, "x")
        sessions.forget_user(target.user_id)

    assert (held.result().reason, held.result().may_have_executed) == (Reason.SESSION_LOST, True)


async def failure_of_held(sessions: Sessions, target: Target) -> UpstreamFailed:
    with pytest.raises(UpstreamFailed) as caught:
        await called(sessions, target, "held")
    return caught.value


async def test_a_call_in_progress_is_answered_although_others_cannot_connect() -> None:
    async with (
        serving({}) as (host, sessions, target),
        asyncio.TaskGroup() as tasks,
    ):
        held = tasks.create_task(called(sessions, target, "held"))
        await host.until_asked("held")
        host.stop_listening()
        with pytest.raises(UpstreamFailed) as caught:
            await called(sessions, target, "echo")
        assert not held.done()
        host.released.set()

    failure = caught.value
    assert (failure.reason, failure.may_have_executed) == (Reason.CONNECT_FAILED, False)
    assert held.result() == SAID
