"""An MCP server in the test's own process: tools that tell who calls, a prompt and resources."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ImageContent, TextContent
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from support.host.ports import free_port
from support.mcpgateway.servers import until_listening

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Erk"
PNG += "Jggg=="


@dataclass(slots=True)
class EverythingServer:
    """A running server.

    Attributes:
        url: Its endpoint.
        server: The server, to which a test may add tools.
        seen: The identities of calls, in order.
        listening: Set once somebody listens to changes.
    """

    url: str
    server: MCPServer
    seen: list[str] = field(default_factory=list)
    listening: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def place(self) -> str:
        """The host and port, as the egress policy names them."""
        return self.url.removeprefix("http://").partition("/")[0]


class Listeners:
    """Stands before the application, and notes when somebody listens to changes."""

    def __init__(self, application: ASGIApp, listening: asyncio.Event) -> None:
        self._application = application
        self._listening = listening

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
        headers = dict(scope.get("headers", ()))
        is_listening = headers.get(b"mcp-method") == b"subscriptions/listen"

        async def sending(message: Message) -> None:
            await send(message)
            if is_listening and message["type"] == "http.response.body":
                self._listening.set()

        await self._application(scope, receive, sending)


def everything(url: str, description: str = "Repeat a text.") -> EverythingServer:
    """Make the server; its tool `echo` has this description."""
    server = MCPServer("everything", instructions="Use echo\u200b to repeat.")
    made = EverythingServer(url, server)

    @server.tool(description=description, structured_output=False)
    def echo(text: str) -> str:
        return text

    @server.tool(structured_output=False)
    def whoami(context: Context[Any, Any]) -> str:
        """Tell which credentials the call came with."""
        headers = context.headers or {}
        identity = headers.get("authorization") or headers.get("x-key") or "nobody"
        made.seen.append(identity)
        return identity

    @server.tool(structured_output=False)
    def picture() -> list[TextContent | ImageContent]:
        """Draw something."""
        return [
            TextContent(type="text", text="before"),
            ImageContent(type="image", data=PNG, mime_type="image/png"),
            TextContent(type="text", text="after"),
        ]

    @server.tool(structured_output=False)
    def long_text(bytes_count: int) -> str:
        """Say much."""
        return "x" * bytes_count

    @server.tool(structured_output=False)
    async def grow(context: Context[Any, Any]) -> str:
        """Add a tool, and announce it."""
        server.add_tool(lambda: "", name="grown", description="New.")
        await context.notify_tools_changed()
        return "grown"

    @server.prompt()
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Say hello to {name}."

    @server.resource("memo://note")
    def note() -> str:
        """A note."""
        return "remember the milk"

    return made


@asynccontextmanager
async def everything_server(
    port: int | None = None, description: str = "Repeat a text."
) -> AsyncIterator[EverythingServer]:
    """Serve it over streamable HTTP until the context ends."""
    port = free_port() if port is None else port
    made = everything(f"http://127.0.0.1:{port}/mcp", description)
    async with served(Listeners(made.server.streamable_http_app(), made.listening), port):
        yield made


@asynccontextmanager
async def served(application: ASGIApp, port: int) -> AsyncIterator[None]:
    """Serve an application in this process until the context ends."""
    config = uvicorn.Config(
        application, host="127.0.0.1", port=port, log_level="critical", timeout_graceful_shutdown=1
    )
    serving = uvicorn.Server(config)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(serving.serve())
        try:
            await until_listening(port)
            yield
        finally:
            serving.should_exit = True
            await asyncio.wait({task})


def main(port: str) -> None:
    """Serve until killed."""
    application = everything(f"http://127.0.0.1:{port}/mcp").server.streamable_http_app()
    uvicorn.run(application, host="127.0.0.1", port=int(port), log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
