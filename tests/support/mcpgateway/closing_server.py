"""An MCP server with server-sent events that closes its stream after every call, made by hand."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from support.host.ports import free_port

OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
TOOL = {"name": "echo", "description": "x" * 10_000, "inputSchema": {"type": "object"}}
_SESSION = re.compile(rb"session=(\d+)")


@dataclass(slots=True)
class ClosingServer:
    """Counts the streams that were opened, and knows those that are open.

    Attributes:
        url: Its endpoint.
        opened: How many streams were opened.
        calls: How many calls were made.
        streams: The open streams, by session.
    """

    url: str
    opened: int = 0
    calls: int = 0
    streams: dict[int, asyncio.StreamWriter] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

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
        session = next(self._numbers)
        self.opened += 1
        self.streams[session] = writer
        writer.write(OPEN + f"event: endpoint\ndata: /messages?session={session}\n\n".encode())
        try:
            await reader.read()
        finally:
            self.streams.pop(session, None)

    async def _message(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        writer.write(ACCEPTED)
        found = _SESSION.search(head)
        stream = self.streams.get(int(found[1])) if found else None
        message = json.loads(body)
        if stream is None or "id" not in message:
            return
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], **self._answer(message)})
        stream.write(f"event: message\ndata: {answer}\n\n".encode())
        await stream.drain()
        if message["method"] == "tools/call":
            self.calls += 1
            stream.write_eof()

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                version = message["params"]["protocolVersion"]
                server = {"name": "closing", "version": "1"}
                opened = {"protocolVersion": version, "serverInfo": server}
                return {"result": {**opened, "capabilities": {"tools": {}}}}
            case "tools/list":
                return {"result": {"tools": [TOOL]}}
            case "tools/call":
                return {"result": {"content": [{"type": "text", "text": "said"}]}}
            case _:
                return {"error": {"code": -32601, "message": "unknown"}}


@asynccontextmanager
async def closing_server() -> AsyncIterator[ClosingServer]:
    """Serve until the context ends."""
    port = free_port()
    made = ClosingServer(f"http://127.0.0.1:{port}/sse")
    async with asyncio.TaskGroup() as tasks:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.create_task(made.serve(reader, writer))

        server = await asyncio.start_server(accept, "127.0.0.1", port)
        try:
            yield made
        finally:
            server.close()
            for stream in tuple(made.streams.values()):
                stream.close()
