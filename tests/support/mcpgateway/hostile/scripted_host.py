"""An MCP server made by hand, with sessions or without: what it replies is scripted by names."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from support.host.ports import free_port
from support.mcpgateway.servers import read_request

#: What a modern server adds to its results.
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
CAPABILITIES: Mapping[str, Mapping[str, object]] = {"tools": {}, "prompts": {}, "resources": {}}
SAID = {"content": [{"type": "text", "text": "said"}], **COMPLETE}
JSON = "application/json"
EVENTS = "text/event-stream"
#: The name of what a client answers to a request of the server.
ANSWERED = "answered"
#: The name of the stream that a session has beside its calls.
STANDING = "standing stream"


@dataclass(frozen=True, slots=True)
class Reply:
    """The HTTP response to one request.

    Attributes:
        body: What it has, without the id of the request; None for an empty body. A text is sent as
            it is, with the id of the request for each `REQUEST_ID`.
        status: Its status.
        kind: Its media type.
        headers: Further lines of its head.
        is_cut: Whether the connection is closed after half of the body.
        is_held: Whether it is sent only when the host releases it.
        is_missing: Whether the connection is closed without it.
        asks: The method and parameters of a request of the server, which is sent before it is held
            and before the body; all of them are events then.
        after: The name that has to be asked for before anything is sent.
    """

    body: Mapping[str, Any] | str | None = field(default_factory=lambda: {"result": SAID})
    status: int = 200
    kind: str = JSON
    headers: str = ""
    is_cut: bool = False
    is_held: bool = False
    is_missing: bool = False
    asks: Mapping[str, Any] | None = None
    after: str = ""

    def begun(self) -> bytes:
        """Return the bytes that are sent before the reply is held."""
        if self.asks is None:
            return b""
        asked = json.dumps({"jsonrpc": "2.0", "id": "asked-1", **self.asks})
        head = f"HTTP/1.1 {self.status} Status\r\nContent-Type: {EVENTS}\r\n{self.headers}"
        return f"{head}Connection: close\r\n\r\nevent: message\ndata: {asked}\n\n".encode()

    def sent(self, request_id: object) -> bytes:
        """Return the bytes of the response that follow."""
        match self.body:
            case None:
                text = ""
            case str():
                text = self.body.replace("REQUEST_ID", json.dumps(request_id))
            case _:
                text = json.dumps({"jsonrpc": "2.0", "id": request_id, **self.body})
        if self.kind == EVENTS or self.asks is not None:
            text = f"event: message\ndata: {text}\n\n"
        if self.asks is not None:
            return text.encode()
        head = f"HTTP/1.1 {self.status} Status\r\nContent-Type: {self.kind}\r\n{self.headers}"
        head += f"Connection: close\r\nContent-Length: {len(text.encode())}\r\n\r\n"
        return (head + (text[: len(text) // 2] if self.is_cut else text)).encode()


def error_reply(status: int, code: int, message: str, kind: str = JSON) -> Reply:
    """Return a JSON-RPC error with an HTTP status."""
    return Reply({"error": {"code": code, "message": message}}, status, kind)


@dataclass(slots=True)
class ScriptedHost:
    """A running server.

    Attributes:
        url: Its endpoint.
        is_modern: Whether it has no sessions.
        script: The replies by the names of tools and prompts, the URIs of resources, and else by
            methods; by `ANSWERED` those to answers to what the server asks, and by `STANDING` the
            one to a request for the stream beside the calls.
        asked: The names and URIs that were asked for, in order.
        ids: The ids of the last requests of these names and URIs.
        opened: How many sessions were opened.
        deleted: The sessions that were deleted, in order.
        deleting: The reply to that.
        forgotten: Sessions that it does not know any more.
        forgetting: The reply to requests of those.
        released: Lets it send the replies that are held.
    """

    url: str
    is_modern: bool
    script: Mapping[str, Reply]
    asked: list[str] = field(default_factory=list)
    ids: dict[str, object] = field(default_factory=dict)
    opened: int = 0
    deleted: list[str] = field(default_factory=list)
    deleting: Reply = field(default_factory=lambda: Reply(None))
    forgotten: set[str] = field(default_factory=set)
    forgetting: Reply = field(default_factory=lambda: Reply(None, 404))
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None

    async def until_asked(self, name: str) -> None:
        """Wait for a request of this name."""
        while name not in self.asked:
            self._came.clear()
            await self._came.wait()

    async def until_deleted(self, session: str) -> None:
        """Wait until a session is deleted."""
        while session not in self.deleted:
            self._came.clear()
            await self._came.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reply to one request."""
        with suppress(ConnectionError):
            request = await read_request(reader)
            reply, request_id = self.reply_to(request or b"")
            if reply.after:
                await self.until_asked(reply.after)
            writer.write(reply.begun())
            if reply.is_held:
                await self.released.wait()
            if not reply.is_missing:
                writer.write(reply.sent(request_id))
            writer.close()
            await writer.wait_closed()

    def stop_listening(self) -> None:
        """Accept no more connections; those that are open stay."""
        assert self._server is not None
        self._server.close()

    def listens_with(self, server: asyncio.Server) -> None:
        """Keep what accepts the connections."""
        self._server = server

    def reply_to(self, request: bytes) -> tuple[Reply, object]:
        """Return the reply to a request, and the id that it has."""
        head, _, body = request.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        session = next((each[16:] for each in lines if each.startswith("mcp-session-id: ")), "")
        self._came.set()
        if session in self.forgotten:
            return self.forgetting, None
        if head.startswith(b"DELETE"):
            self.deleted.append(session)
            return self.deleting, None
        if not head.startswith(b"POST"):
            return self.script.get(STANDING, Reply(None, 405)), None
        message = json.loads(body)
        if "method" not in message:
            self.asked.append(ANSWERED)
            return self.script.get(ANSWERED, Reply(None, 202)), None
        if "id" not in message:
            return self.script.get(message["method"], Reply(None, 202)), None
        return self._answer(message), message["id"]

    def _answer(self, message: Mapping[str, Any]) -> Reply:
        method, params = message["method"], message.get("params", {})
        match method:
            case "server/discover" if self.is_modern:
                found = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
                return Reply({"result": {**found, **COMPLETE}})
            case "server/discover":
                return Reply(None, 400)
            case "initialize":
                self.opened += 1
                server = {"name": "scripted", "version": "1"}
                made = {"protocolVersion": "2025-06-18", "serverInfo": server}
                headers = f"Mcp-Session-Id: session-{self.opened}\r\n"
                return Reply({"result": {**made, "capabilities": CAPABILITIES}}, headers=headers)
            case _:
                name = params.get("name") or params.get("uri") or method
                self.asked.append(name)
                self.ids[name] = message["id"]
                return self.script.get(name, Reply())


@asynccontextmanager
async def scripted_host(
    script: Mapping[str, Reply], *, is_modern: bool = False
) -> AsyncIterator[ScriptedHost]:
    """Serve until the context ends."""
    port = free_port()
    host = ScriptedHost(f"http://127.0.0.1:{port}/mcp", is_modern, script)
    async with asyncio.TaskGroup() as tasks:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.create_task(host.serve(reader, writer))

        server = await asyncio.start_server(accept, "127.0.0.1", port)
        host.listens_with(server)
        try:
            yield host
        finally:
            server.close()
            host.released.set()
