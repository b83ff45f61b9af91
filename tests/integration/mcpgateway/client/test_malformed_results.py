"""Definitions and results that do not keep what they promise: what can be kept is not lost."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from mcpgateway.client.content import LinkPart, StructuredPart, TextPart, ToolAnswer, UnknownPart
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Limits, Reason, Target
from support.host.memory_peak import memory_peak
from support.host.ports import free_port
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.servers import raw_server
from support.mcpgateway.session_calls import Seen, failure_of, sessions_to
from support.mcpgateway.stream_server import DEEP
from support.mcpgateway.values import a_server, a_target

OUTPUT = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
TOOL = {"name": "add", "inputSchema": {"type": "object"}, "outputSchema": OUTPUT}
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **COMPLETE}
RESULT_BYTES_MAX = 1024 * 1024
LARGE_BYTES = 100 * 1024 * 1024
#: What a response of that limit may take, with everything that is made of it.
ADDED_BYTES_MAX = 48 * 1024 * 1024


@dataclass(slots=True)
class Server:
    """Answers calls with one result, whatever its listing promised."""

    result: dict[str, Any]
    tools: Sequence[dict[str, Any]] = (TOOL,)
    asked: list[str] = field(default_factory=list)
    kind: str = "application/json"

    def answer(self, request: bytes) -> bytes:
        """Answer one HTTP request."""
        message = json.loads(request.partition(b"\r\n\r\n")[2])
        self.asked.append(message["method"])
        results = {
            "server/discover": DISCOVERED,
            "tools/list": {"tools": list(self.tools), **COMPLETE},
            "tools/call": {**self.result, **COMPLETE},
        }
        result = results[message["method"]]
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return response(body.replace('"DEEP"', DEEP), self.kind)


def response(body: str, kind: str = "application/json") -> bytes:
    if kind == "text/event-stream":
        body = f"event: message\r\ndata: {body}\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: "
    return f"{head}{len(body.encode())}\r\n\r\n{body}".encode()


@asynccontextmanager
async def answering(
    result: dict[str, Any],
    tools: Sequence[dict[str, Any]] = (TOOL,),
    kind: str = "application/json",
) -> AsyncIterator[tuple[Sessions, Target, Server]]:
    port, server = free_port(), Server(result, tools, kind=kind)
    url = f"http://127.0.0.1:{port}/mcp"
    target = a_target(a_server(url=url, limits=Limits(result_bytes_max=RESULT_BYTES_MAX)))
    async with raw_server(port, server.answer), sessions_to(url) as sessions:
        yield sessions, target, server


async def called(sessions: Sessions, target: Target) -> ToolAnswer:
    return await sessions.call_tool(target, "add", b"{}", ignore_progress, cancel_question)


@pytest.mark.parametrize("structured", [{"sum": "three"}, {"other": 1}, {}])
async def test_a_result_against_its_output_schema_is_kept_and_the_tool_not_called_again(
    structured: dict[str, Any],
) -> None:
    result = {"content": [{"type": "text", "text": "it ran"}], "structuredContent": structured}
    async with answering(result) as (sessions, target, server):
        await sessions.list_tools(target)
        answer = await called(sessions, target)

    text, kept = answer.parts
    assert isinstance(kept, StructuredPart)
    assert (answer.is_error, text, json.loads(kept.json)) == (False, TextPart("it ran"), structured)
    assert server.asked.count("tools/call") == 1


async def test_a_tool_that_was_not_listed_is_called_without_a_listing() -> None:
    result = {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}}
    async with answering(result) as (sessions, target, server):
        answer = await called(sessions, target)

    assert not answer.is_error
    assert server.asked == ["server/discover", "tools/call"]


async def test_a_definition_that_is_too_large_is_left_out_alone() -> None:
    itself = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    deep: dict[str, Any] = {"type": "object"}
    # Deeper than a definition may be, and not too deep to be read.
    for _ in range(40):
        deep = {"type": "object", "properties": {"in": deep}}
    large = {"type": "object", "description": "x" * 5_000_000}
    schemas = {"plain": {"type": "object"}, "itself": itself, "deep": deep, "large": large}
    tools = [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]
    async with answering({}, tools) as (sessions, target, _):
        catalogue = await sessions.list_tools(target)

    assert (sorted(catalogue.tools), catalogue.dropped) == (["itself", "plain"], 2)
    assert json.loads(catalogue.tools["itself"].input_schema_json) == itself


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_definition_that_is_too_deep_to_be_read_is_left_out_alone(kind: str) -> None:
    schemas = {"first": {"type": "object"}, "abyss": "DEEP", "last": {"type": "object"}}
    tools = [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]
    # What is too deep beside a definition does not concern it.
    tools[2]["_meta"] = {"vendor/extra": "DEEP"}
    async with answering({}, tools, kind) as (sessions, target, server):
        catalogue = await sessions.list_tools(target)
        asked_for = server.asked.count("tools/list")

    assert (sorted(catalogue.tools), catalogue.dropped) == (["first", "last"], 1)
    assert asked_for == 2


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_definitions_against_the_protocol_are_left_out_alone(kind: str) -> None:
    plain = {"type": "object"}
    tools: list[Any] = [
        {"name": "plain", "inputSchema": plain},
        # What it means is clear.
        {"name": "without_type", "inputSchema": {"properties": {"a": {"type": "string"}}}},
        {"name": "without_schema"},
        {"name": 5, "inputSchema": plain},
        {"name": "text", "inputSchema": {"type": "string"}},
        {"name": "described", "inputSchema": plain, "description": ["a", "b"]},
        "no tool",
        None,
    ]
    async with answering({}, tools, kind) as (sessions, target, _):
        catalogue = await sessions.list_tools(target)

    assert (sorted(catalogue.tools), catalogue.dropped) == (["plain", "without_type"], 6)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_text_that_ends_in_half_a_character_is_kept(kind: str) -> None:
    cut = "an emoji \ud83d"
    tool = {"name": "add", "inputSchema": {"type": "object"}, "description": cut}
    result = {"content": [{"type": "text", "text": cut}]}
    async with answering(result, [tool], kind) as (sessions, target, server):
        catalogue = await sessions.list_tools(target)
        answer = await called(sessions, target)

    assert catalogue.tools["add"].description == "an emoji \ufffd"
    assert answer == ToolAnswer(False, (TextPart("an emoji \ufffd"),))
    assert server.asked.count("tools/list") == 1


async def test_what_is_not_base64_is_a_note_and_links_and_html_stay_text() -> None:
    html = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    content = [
        {"type": "text", "text": html},
        {"type": "image", "data": "not base64!", "mimeType": "image/png"},
        {"type": "audio", "data": "%%%", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "memo://x", "blob": "????"}},
        {"type": "resource_link", "uri": "javascript:alert(3)", "name": "click"},
    ]
    async with answering({"content": content}) as (sessions, target, _):
        answer = await called(sessions, target)

    assert answer == ToolAnswer(
        False,
        (
            TextPart(html),
            UnknownPart("image that is not base64"),
            UnknownPart("audio that is not base64"),
            UnknownPart("resource that is not base64"),
            LinkPart("javascript:alert(3)", "click", "", ""),
        ),
    )


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_hundred_megabytes_are_not_read_to_their_end_and_not_kept(
    is_chunked: bool,
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    target = a_target(a_server(url=url, limits=Limits(result_bytes_max=RESULT_BYTES_MAX)))
    sent = Sent()
    async with large_server(port, sent, is_chunked), sessions_to(url) as sessions:
        with memory_peak() as peak:
            failure = await failure_of(sessions, target, "add", Seen())

    assert (failure.reason, failure.may_have_executed) == (Reason.RESULT_TOO_LARGE, True)
    # What is on its way is as much as sockets hold.
    assert sent.bytes < LARGE_BYTES / 2
    assert peak.added_bytes < ADDED_BYTES_MAX


@dataclass(slots=True)
class Sent:
    """How much of a large response was taken."""

    bytes: int = 0


@asynccontextmanager
async def large_server(port: int, sent: Sent, is_chunked: bool) -> AsyncIterator[None]:
    """Serve a tool whose result is larger than anything: sent as long as it is read."""
    piece = b"x" * 65536
    framed = b"%x\r\n%s\r\n" % (len(piece), piece) if is_chunked else piece
    length = b"Transfer-Encoding: chunked" if is_chunked else b"Content-Length: %d" % LARGE_BYTES
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + length + b"\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await read_request(reader):
                message = json.loads(request)
                if message["method"] != "tools/call":
                    body = {"jsonrpc": "2.0", "id": message["id"], "result": DISCOVERED}
                    writer.write(response(json.dumps(body)))
                    continue
                writer.write(head)
                while sent.bytes < LARGE_BYTES:
                    writer.write(framed)
                    await writer.drain()
                    sent.bytes += len(piece)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with asyncio.TaskGroup() as tasks:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.create_task(serve(reader, writer))

        server = await asyncio.start_server(accept, "127.0.0.1", port)
        try:
            yield
        finally:
            server.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Return the body of one request."""
    head: Sequence[bytes] = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    lengths = [line for line in head if line.startswith(b"content-length:")]
    return await reader.readexactly(int(lengths[0].partition(b":")[2])) if lengths else b""
