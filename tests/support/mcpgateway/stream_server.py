"""A hostile MCP server of the older transport, made by hand: each of its tools breaks a rule."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from support.host.ports import free_port

OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
REFUSED = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no such thing"}}'
REFUSING = (
    b"HTTP/1.1 500 Failed\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(REFUSED), REFUSED)
)
#: More than an event may have.
LARGE = "x" * 9_000_000
FAILED = b"HTTP/1.1 500 Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#: More levels than any reader of JSON follows.
DEEP = '{"type":"object","properties":{"in":' * 3000 + "{}" + "}}" * 3000
SAID = {"content": [{"type": "text", "text": "said"}]}
#: The name of what a client answers to a request of the server.
ANSWERED = "answered"
ELICITATION = {
    "id": "asked-1",
    "method": "elicitation/create",
    "params": {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}},
}


@dataclass(slots=True)
class StreamServer:
    """Answers calls by the name of the tool.

    - `echo` keeps all rules.
    - `silent` answers neither the post nor the request.
    - `open` answers the request, and leaves the post open.
    - `late` answers the request, and hangs up on the post when `refusing` is set.
    - `asking` asks the person, and answers the request when it has accepted the answer.
    - `ending` ends the stream, and leaves the post open.
    - `refused` ends the stream, and refuses the post when `refusing` is set.
    - `deep` has structured content that is too deep to be read.
    - `unreadable` has a result that is no object.
    - `progress` reports progress that is no number for a float, and answers the request.
    - `large` has a result that is too large for an event.
    - `refusing` answers the post with a JSON-RPC error and an HTTP status.
    - `cut` hangs up on the post.

    Attributes:
        url: Its endpoint.
        opened: How many streams were opened.
        received: The methods of messages as they came, and the tools of calls.
        came: Is set by each message.
        answering: The response to the answer of a person; empty to hang up.
        is_answering_long: Whether it leaves the post of that answer open after the response.
        refusing: Lets it refuse a post.
        given_up: Is set when a client hangs up on a post that was left open.
    """

    url: str
    opened: int = 0
    received: list[str] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    answering: bytes = ACCEPTED
    is_answering_long: bool = False
    refusing: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: asyncio.Event = field(default_factory=asyncio.Event)
    _streams: dict[int, asyncio.StreamWriter] = field(default_factory=dict)
    _asking: object = None

    async def until_received(self, name: str) -> None:
        """Wait for a message."""
        while name not in self.received:
            self.came.clear()
            await self.came.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: a stream of events, or one message."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET"):
                await self._stream(reader, writer)
            else:
                await self._message(head, reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        session = self.opened
        self._streams[session] = writer
        writer.write(OPEN + f"event: endpoint\ndata: /messages?session={session}\n\n".encode())
        try:
            await reader.read()
        finally:
            self._streams.pop(session, None)

    async def _message(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        message = json.loads(await reader.readexactly(int(length[1]) if length else 0))
        found = re.search(rb"session=(\d+)", head)
        assert found is not None
        stream = self._streams.get(int(found[1]))
        if "method" not in message:
            self._answered(writer, stream)
            if self.is_answering_long and not await reader.read():
                self.given_up.set()
            return
        method, tool = message["method"], message.get("params", {}).get("name", "")
        self.received.append(tool or method)
        self.came.set()
        if tool == "cut":
            return
        if tool == "refusing":
            writer.write(REFUSING)
            return
        if tool not in ("silent", "open", "late", "ending", "refused"):
            writer.write(ACCEPTED)
        if stream is None or "id" not in message:
            return
        if tool in ("ending", "refused"):
            stream.write_eof()
        elif tool == "asking":
            self._asking = message["id"]
            stream.write(_event(ELICITATION))
        elif tool != "silent":
            if tool == "progress":
                stream.write(_progress(message["id"]))
            stream.write(_event({"id": message["id"], **_answer(method, tool)}))
        if tool in ("refused", "late"):
            await self.refusing.wait()
        if tool == "refused":
            writer.write(FAILED)
        if tool in ("silent", "open", "ending") and not await reader.read():
            self.given_up.set()

    def _answered(self, writer: asyncio.StreamWriter, stream: asyncio.StreamWriter | None) -> None:
        self.received.append(ANSWERED)
        self.came.set()
        writer.write(self.answering)
        if stream is not None and self.answering == ACCEPTED:
            stream.write(_event({"id": self._asking, "result": SAID}))

    def close(self) -> None:
        """End all streams."""
        for stream in tuple(self._streams.values()):
            stream.close()


def _progress(token: object) -> bytes:
    params = {"progressToken": token, "progress": 10**400}
    return _event({"method": "notifications/progress", "params": params})


def _event(message: Mapping[str, object]) -> bytes:
    text = json.dumps({"jsonrpc": "2.0", **message}).replace('"DEEP"', DEEP)
    return f"event: message\ndata: {text}\n\n".replace("LARGE", LARGE).encode()


def _answer(method: str, tool: str) -> dict[str, Any]:
    match method, tool:
        case "initialize", _:
            server = {"name": "hostile", "version": "1"}
            opened = {"protocolVersion": "2025-06-18", "serverInfo": server}
            return {"result": {**opened, "capabilities": {"tools": {}}}}
        case "tools/list", _:
            schemas: dict[str, Any] = {"echo": {"type": "object"}, "deep": "DEEP"}
            tools = [{"name": name, "inputSchema": each} for name, each in schemas.items()]
            return {"result": {"tools": [*tools, {"name": "without a schema"}, "no tool"]}}
        case "tools/call", "deep":
            return {"result": {**SAID, "structuredContent": {"in": "DEEP"}}}
        case "tools/call", "large":
            return {"result": {"content": [{"type": "text", "text": "LARGE"}]}}
        case "tools/call", "unreadable":
            return {"result": "text"}
        case "tools/call", _:
            return {"result": SAID}
        case _:
            return {"error": {"code": -32601, "message": "unknown"}}


@asynccontextmanager
async def stream_server() -> AsyncIterator[StreamServer]:
    """Serve until the context ends."""
    port = free_port()
    made = StreamServer(f"http://127.0.0.1:{port}/sse")
    async with asyncio.TaskGroup() as tasks:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.create_task(made.serve(reader, writer))

        server = await asyncio.start_server(accept, "127.0.0.1", port)
        try:
            yield made
        finally:
            server.close()
            made.close()
