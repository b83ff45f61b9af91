"""Messages that a server must not send: they concern no other call than that of their response."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcpgateway.client.call import Progress
from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Limits, Reason, Target
from mcpgateway.servers.errors import UpstreamFailed
from support.host.ports import free_port
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.hostile.scripted_host import (
    EVENTS,
    JSON,
    STANDING,
    Reply,
    ScriptedHost,
    scripted_host,
)
from support.mcpgateway.servers import raw_server
from support.mcpgateway.session_calls import Seen, sessions_to
from support.mcpgateway.values import a_server, a_target

SAID = ToolAnswer(False, (TextPart("said"),))
HELD = Reply(is_held=True)
HUGE = "1" + "0" * 400
#: What is sent in place of the numbers of progress, in JSON.
NO_NUMBERS = (HUGE, f"-{HUGE}", "1e400", "NaN", "Infinity", "true", '"5"', "null", "[1]", "{}")
RESULT = '{"content":[{"type":"text","text":"said"}]}'
FORGED = '{"content":[{"type":"text","text":"forged"}]}'
ANSWER = f'{{"jsonrpc":"2.0","id":REQUEST_ID,"result":{RESULT}}}'
NOTICES: Mapping[str, Mapping[str, Any]] = {
    "log level": {"method": "notifications/message", "params": {"level": 10**400, "data": 1}},
    "log without parameters": {"method": "notifications/message"},
    "list": {"method": "notifications/tools/list_changed", "params": {"_meta": [10**400]}},
    "cancelled number": {"method": "notifications/cancelled", "params": {"requestId": 10**400}},
    "cancelled list": {"method": "notifications/cancelled", "params": {"requestId": [1]}},
    "cancelled nothing": {"method": "notifications/cancelled"},
    "token": {
        "method": "notifications/progress",
        "params": {"progressToken": [10**400], "progress": 1},
    },
    "resource": {"method": "notifications/resources/updated", "params": {"uri": 10**400}},
    "unknown": {"method": "notifications/unknown", "params": {"n": 10**400}},
    "ping": {"id": 10**400, "method": "ping", "params": {"_meta": {"progressToken": [1]}}},
    "question": {"id": "", "method": "elicitation/create", "params": {"message": 10**400}},
    "sampling": {"id": -1, "method": "sampling/createMessage", "params": {"maxTokens": 10**400}},
    "unknown request": {"id": "9" * 5000, "method": "\u0000", "params": {"n": float("nan")}},
}


@asynccontextmanager
async def serving(script: Mapping[str, Reply]) -> AsyncIterator[tuple[ScriptedHost, Sessions]]:
    async with (
        asyncio.timeout(30),
        scripted_host({"held": HELD, **script}) as host,
        sessions_to(host.url) as sessions,
    ):
        yield host, sessions


def target_at(host: ScriptedHost) -> Target:
    return a_target(a_server(url=host.url, limits=Limits()))


async def called(sessions: Sessions, host: ScriptedHost, tool: str) -> ToolAnswer:
    return await sessions.call_tool(target_at(host), tool, b"{}", ignore_progress, cancel_question)


async def failure_of(sessions: Sessions, host: ScriptedHost, tool: str) -> UpstreamFailed:
    with pytest.raises(UpstreamFailed) as caught:
        await called(sessions, host, tool)
    return caught.value


def events(*messages: str) -> Reply:
    return Reply("\n\ndata: ".join(messages), kind=EVENTS)


def progress(numbers: str) -> str:
    params = f'{{"progressToken":REQUEST_ID,{numbers}}}'
    return f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}'


@asynccontextmanager
async def beside_a_held_call(
    script: Mapping[str, Reply],
) -> AsyncIterator[tuple[ScriptedHost, Sessions]]:
    """Let a call run in the session; at the end it has its own answer, in the same session."""
    async with serving(script) as (host, sessions), asyncio.TaskGroup() as tasks:
        held = tasks.create_task(called(sessions, host, "held"))
        await host.until_asked("held")
        yield host, sessions
        after = await called(sessions, host, "echo")
        is_ended = held.done()
        host.released.set()
        answer = await held

    assert (answer, after, is_ended, host.opened) == (SAID, SAID, False, 1)


@pytest.mark.parametrize("number", NO_NUMBERS, ids=lambda each: each[:8])
async def test_progress_that_is_no_number_is_dropped_and_ends_no_call(number: str) -> None:
    seen = Seen()
    sent = (f'"progress":{number}', f'"progress":1,"total":{number}', '"progress":2,"total":3')
    script = {"x": events(*map(progress, sent), ANSWER)}
    async with beside_a_held_call(script) as (host, sessions):
        answer = await sessions.call_tool(target_at(host), "x", b"{}", seen.note, cancel_question)

    assert (answer, seen.all) == (SAID, [Progress(1.0, None, ""), Progress(2.0, 3.0, "")])


@pytest.mark.parametrize("name", NOTICES)
async def test_messages_that_the_client_cannot_handle_end_no_call(name: str) -> None:
    notice = json.dumps({"jsonrpc": "2.0", **NOTICES[name]})
    async with beside_a_held_call({"x": events(notice, ANSWER)}) as (host, sessions):
        answer = await called(sessions, host, "x")

    assert answer == SAID


async def test_a_stream_beside_the_calls_with_too_large_a_time_to_wait_ends_no_call() -> None:
    standing = Reply(f"{{}}\nretry: {HUGE}", kind=EVENTS)
    async with beside_a_held_call({STANDING: standing}) as (host, sessions):
        answer = await called(sessions, host, "x")

    assert answer == SAID


@pytest.mark.parametrize("kind", [JSON, EVENTS])
@pytest.mark.parametrize("member", [f'"result":{FORGED}', '"error":{"code":1,"message":"forged"}'])
@pytest.mark.parametrize("wrong_id", ["HELD_ID", '"HELD_ID"', "999", '"no number"'])
async def test_an_answer_with_the_id_of_another_request_fails_its_own_call_at_once(
    kind: str, member: str, wrong_id: str
) -> None:
    async with beside_a_held_call({}) as (host, sessions):
        other = wrong_id.replace("HELD_ID", str(host.ids["held"]))
        forged = f'{{"jsonrpc":"2.0","id":{other},{member}}}'
        host.script = {**host.script, "x": Reply(forged, kind=kind)}
        failure = await failure_of(sessions, host, "x")

    assert (failure.reason, failure.may_have_executed) == (Reason.PROTOCOL_ERROR, True)
    assert str(failure) == (
        "the server does not follow the protocol (its answer has the id of another request)"
    )


async def test_a_response_that_is_resumed_answers_no_other_call() -> None:
    begun = Reply("id: 1\nretry: 1\ndata:\n\n", kind="text/event-stream; charset=utf-8")
    async with beside_a_held_call({"x": begun}) as (host, sessions):
        forged = f'{{"jsonrpc":"2.0","id":{host.ids["held"]},"result":{FORGED}}}'
        host.script = {**host.script, STANDING: events(forged)}
        failure = await failure_of(sessions, host, "x")

    assert (failure.reason, failure.may_have_executed) == (Reason.PROTOCOL_ERROR, True)


async def test_the_stream_beside_the_calls_answers_none() -> None:
    # The first session has the ids of its requests in order, and the held call is among them.
    forged = [f'{{"jsonrpc":"2.0","id":{each},"result":{FORGED}}}' for each in range(1, 9)]
    # The notice after them shows that they were received.
    notice = '{"jsonrpc":"2.0","id":"asked-1","method":"ping"}'
    body = "\n\ndata: ".join([*forged, notice])
    standing = Reply(body, kind=EVENTS, after="held")
    async with beside_a_held_call({STANDING: standing}) as (host, _):
        await host.until_asked("answered")


@pytest.mark.parametrize("kind", [JSON, EVENTS])
async def test_an_error_without_an_id_answers_the_call_of_its_response(kind: str) -> None:
    error = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what is this"}}'
    async with beside_a_held_call({"x": Reply(error, kind=kind)}) as (host, sessions):
        answer = await called(sessions, host, "x")

    assert answer == ToolAnswer(True, (TextPart("what is this"),))


@pytest.mark.parametrize("kind", [JSON, EVENTS])
async def test_an_id_that_became_a_text_is_the_same_id(kind: str) -> None:
    answer = ANSWER.replace("REQUEST_ID", '"REQUEST_ID"')
    async with beside_a_held_call({"x": Reply(answer, kind=kind)}) as (host, sessions):
        assert await called(sessions, host, "x") == SAID


async def test_a_body_without_an_answer_fails_its_call_at_once() -> None:
    body = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
    async with beside_a_held_call({"x": Reply(body)}) as (host, sessions):
        failure = await failure_of(sessions, host, "x")

    assert (failure.reason, str(failure)) == (
        Reason.PROTOCOL_ERROR,
        "the server does not follow the protocol (its response has no answer)",
    )


UNREADABLE = {
    "batch": f"[{ANSWER}]",
    "no JSON": "<html>",
    "too deep": f'{{"jsonrpc":"2.0","id":REQUEST_ID,"result":{{"a":{"[" * 3000}{"]" * 3000}}}}}',
    "too large a number": f'{{"jsonrpc":"2.0","id":REQUEST_ID,"result":{{"a":{"9" * 5000}}}}}',
    "no members": "{}",
    "result of no object": '{"jsonrpc":"2.0","id":REQUEST_ID,"result":"text"}',
    "id of no number": f'{{"jsonrpc":"2.0","id":1.5,"result":{RESULT}}}',
}


@pytest.mark.parametrize("kind", [JSON, EVENTS])
@pytest.mark.parametrize("name", UNREADABLE)
async def test_an_answer_that_cannot_be_read_is_described_in_own_words(
    name: str, kind: str
) -> None:
    async with beside_a_held_call({"x": Reply(UNREADABLE[name], kind=kind)}) as (host, sessions):
        failure = await failure_of(sessions, host, "x")

    assert (failure.reason, str(failure)) == (
        Reason.PROTOCOL_ERROR,
        "the server does not follow the protocol (the server's answer cannot be read)",
    )


@pytest.mark.parametrize("result", [{"content": 5}, {"content": [{"type": 5}]}, {}])
async def test_a_result_that_is_none_is_described_in_own_words(result: dict[str, Any]) -> None:
    async with beside_a_held_call({"x": Reply({"result": result})}) as (host, sessions):
        failure = await failure_of(sessions, host, "x")

    assert (failure.reason, str(failure)) == (
        Reason.PROTOCOL_ERROR,
        "the server does not follow the protocol (its answer does not have the required form)",
    )


async def test_a_body_that_is_no_text_is_described_in_own_words() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    host = ScriptedHost(url, is_modern=True, script={"x": Reply(ANSWER.replace("said", "XX"))})

    def answer(request: bytes) -> bytes:
        reply, request_id = host.reply_to(request)
        return reply.sent(request_id).replace(b"XX", b"\xff\xfe")

    async with raw_server(port, answer), sessions_to(url) as sessions:
        failure = await failure_of(sessions, host, "x")

    assert (failure.reason, str(failure)) == (
        Reason.PROTOCOL_ERROR,
        "the server does not follow the protocol (the server's answer cannot be read)",
    )
