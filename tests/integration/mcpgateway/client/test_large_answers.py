"""Answers of real servers up to the limit of their results, and beyond it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest

from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Limits, Reason, Target, Transport
from mcpgateway.servers.errors import UpstreamFailed
from parley.egress import Policy
from support.host.ports import free_port
from support.host.supervised import supervision
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.servers import (
    START_S_MAX,
    raw_server,
    session_process,
    until_listening,
)
from support.mcpgateway.values import a_server, a_target

MEBIBYTE = 1024 * 1024
RESULT_BYTES_MAX = 2 * MEBIBYTE
#: More than a message may have, however it is encoded.
TOO_LARGE = 9 * MEBIBYTE


@asynccontextmanager
async def sessions_to(url: str) -> AsyncIterator[Sessions]:
    async with (
        asyncio.timeout(3 * START_S_MAX),
        Sessions.open(Policy().with_url(url), supervision()) as sessions,
    ):
        yield sessions


def target_of(url: str, transport: Transport = Transport.STREAMABLE_HTTP) -> Target:
    limits = Limits(result_bytes_max=RESULT_BYTES_MAX)
    return a_target(a_server(url=url, transport=transport, limits=limits))


async def repeated(sessions: Sessions, target: Target, bytes_count: int) -> ToolAnswer:
    arguments = msgspec.json.encode({"bytes_count": bytes_count})
    return await sessions.call_tool(target, "repeat", arguments, ignore_progress, cancel_question)


async def session_count(sessions: Sessions, target: Target) -> str:
    answer = await sessions.call_tool(
        target, "count", b'{"what":"sessions"}', ignore_progress, cancel_question
    )
    (part,) = answer.parts
    assert isinstance(part, TextPart)
    return part.text


@pytest.mark.parametrize(
    ("served", "transport", "sessions_after"),
    [
        ("mcp", Transport.STREAMABLE_HTTP, "1"),
        ("json", Transport.STREAMABLE_HTTP, "1"),
        # Here each of the four calls has a stream of its own, and so has the first contact.
        ("sse", Transport.SSE, "5"),
    ],
)
async def test_a_result_up_to_the_limit_arrives_and_a_larger_one_fails_alone(
    served: str, transport: Transport, sessions_after: str
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/{'sse' if served == 'sse' else 'mcp'}"
    target = target_of(url, transport)
    with session_process(port, served):
        await until_listening(port)
        async with sessions_to(url) as sessions:
            answer = await repeated(sessions, target, RESULT_BYTES_MAX)
            with pytest.raises(UpstreamFailed) as caught:
                await repeated(sessions, target, TOO_LARGE)
            after = await repeated(sessions, target, 3)
            count = await session_count(sessions, target)

    assert answer.bytes == RESULT_BYTES_MAX
    assert (caught.value.reason, caught.value.may_have_executed) == (Reason.RESULT_TOO_LARGE, True)
    assert "exceeds 8454144 bytes" in str(caught.value)
    assert after == ToolAnswer(False, (TextPart("xxx"),))
    assert count == sessions_after


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_server_without_sessions_has_the_same_limit(kind: str) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"

    def answer(request: bytes) -> bytes:
        asked = msgspec.json.decode(request.partition(b"\r\n\r\n")[2])
        if asked["method"] != "tools/call":
            return _response(asked["id"], DISCOVERED, "application/json")
        text = "x" * asked["params"]["arguments"]["bytes_count"]
        result = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
        return _response(asked["id"], result, kind)

    async with raw_server(port, answer), sessions_to(url) as sessions:
        fitting = await repeated(sessions, target_of(url), RESULT_BYTES_MAX)
        with pytest.raises(UpstreamFailed) as caught:
            await repeated(sessions, target_of(url), TOO_LARGE)
        after = await repeated(sessions, target_of(url), 3)

    assert fitting.bytes == RESULT_BYTES_MAX
    assert caught.value.reason is Reason.RESULT_TOO_LARGE
    assert after == ToolAnswer(False, (TextPart("xxx"),))


async def test_a_small_limit_of_results_is_none_of_catalogues() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    schema = {"type": "object", "properties": {"x": {"description": "x" * 60_000}}}
    tools = [{"name": f"t{number}", "inputSchema": schema} for number in range(20)]

    def answer(request: bytes) -> bytes:
        asked = msgspec.json.decode(request.partition(b"\r\n\r\n")[2])
        if asked["method"] == "tools/list":
            return _response(asked["id"], DISCOVERED | {"tools": tools}, "text/event-stream")
        return _response(asked["id"], DISCOVERED, "application/json")

    target = a_target(a_server(url=url, limits=Limits(result_bytes_max=1024)))
    async with raw_server(port, answer), sessions_to(url) as sessions:
        catalogue = await sessions.list_tools(target)

    assert len(catalogue.tools) == 20


async def test_a_post_that_the_older_transport_refuses_says_why() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/sse"

    def answer(request: bytes) -> bytes:
        if request.startswith(b"GET "):
            event = b"event: endpoint\r\ndata: /messages\r\n\r\n"
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(event), event)
        return b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n"

    async with raw_server(port, answer), sessions_to(url) as sessions:
        with pytest.raises(UpstreamFailed) as caught:
            await repeated(sessions, target_of(url, Transport.SSE), 3)

    assert caught.value.reason is Reason.CONNECT_FAILED
    assert "503" in str(caught.value)


DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "public",
}


def _response(request_id: object, result: Mapping[str, object], kind: str) -> bytes:
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})
    if kind == "text/event-stream":
        body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
