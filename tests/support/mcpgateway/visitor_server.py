"""An MCP server with sessions that marks visitors: by session, cookie and catalogue."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from support.host.ports import free_port
from support.mcpgateway.caller_server import CALLER, name_of
from support.mcpgateway.everything_server import everything, served

#: Begins the text of a call, before the name of the user who makes it.
SAID = "said by "


@dataclass(slots=True)
class VisitorServer:
    """A running server, and what it has seen of its visitors.

    Attributes:
        url: Its endpoint.
        keys: The values of the header `X-Key` that came, with how many requests had them.
        cookies: The cookies that came back, of which each response sets another.
        sessions: The sessions of calls, by what the calls said.
        forgotten: Sessions that it does not know any more.
    """

    url: str
    keys: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    cookies: list[str] = field(default_factory=list)
    sessions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    forgotten: set[str] = field(default_factory=set)

    @property
    def place(self) -> str:
        """The host and port, as the egress policy names them."""
        return self.url.removeprefix("http://").partition("/")[0]


class MarksVisitors:
    """Stands before an application of the handshake era, and marks what it answers."""

    def __init__(self, application: ASGIApp, server: VisitorServer) -> None:
        self._application = application
        self._server = server
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note who comes, and fill in the name of the session."""
        headers = {name: value.decode() for name, value in scope.get("headers", ())}
        session = headers.get(b"mcp-session-id", "")
        is_discovery = headers.get(b"mcp-method") == "server/discover"
        if is_discovery or session in self._server.forgotten:
            status = 400 if is_discovery else 404
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        if scope["type"] == "http":
            self._server.keys[headers.get(b"x-key", "")] += 1
            self._server.cookies += [headers[b"cookie"]] if b"cookie" in headers else []

        async def receiving() -> Message:
            message = await receive()
            self._note(session, message.get("body", b""))
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie = f"visitor={next(self._numbers)}; Path=/".encode()
                pairs = [*message.get("headers", ()), (b"set-cookie", cookie)]
                message = {**message, "headers": pairs}
            elif message.get("body"):
                named = message["body"].replace(CALLER.encode(), name_of(session).encode())
                message = {**message, "body": named}
            await send(message)

        await self._application(scope, receiving, sending)

    def _note(self, session: str, body: bytes) -> None:
        if b'"tools/call"' in body.replace(b" ", b""):
            text = json.loads(body)["params"]["arguments"].get("text", "")
            self._server.sessions[text.removeprefix(SAID)].add(session)


@asynccontextmanager
async def visitor_server() -> AsyncIterator[VisitorServer]:
    """Serve it until the context ends; the description of `echo` has the name of the session."""
    port = free_port()
    made = VisitorServer(f"http://127.0.0.1:{port}/mcp")
    application = everything(made.url, f"Repeat a text for {CALLER}.").server.streamable_http_app()
    async with served(MarksVisitors(application, made), port):
        yield made
