"""A program: an MCP server of the handshake era that keeps sessions and tells what befell it.

python mcp_session_server.py PORT mcp|json|sse
"""

import asyncio
import logging
import sys
from collections import Counter

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

seen: Counter[str] = Counter()
server = MCPServer("sessions")


@server.tool(structured_output=False)
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool(structured_output=False)
def count(what: str) -> str:
    """Tell how often something happened: `discover`, `sessions`, `deleted`, `wait`, `cancelled`."""
    return str(seen[what])


@server.tool(structured_output=False)
def repeat(bytes_count: int) -> str:
    """Return a text of this size."""
    return "x" * bytes_count


@server.tool(structured_output=False)
async def wait(context: Context[None, None]) -> str:
    """Tell of progress, then wait for ever."""
    seen["wait"] += 1
    await context.report_progress(1, 2, "half")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        seen["cancelled"] += 1
        raise
    return "never"


class HandshakeOnly:
    """Stands before the application and makes it look like one that knows no discovery."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse discovery, and count what begins a session."""
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-method") == b"server/discover":
            seen["discover"] += 1
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        if scope["type"] == "http" and scope["method"] == "GET":
            seen["sessions"] += 1
        if scope["type"] == "http" and scope["method"] == "DELETE":
            seen["deleted"] += 1
        await self._application(scope, receive, send)


def main(port: str, transport: str) -> None:
    """Serve until killed."""
    is_json = transport == "json"
    application = (
        server.sse_app()
        if transport == "sse"
        else server.streamable_http_app(json_response=is_json)
    )
    logging.getLogger().setLevel(logging.ERROR)
    uvicorn.run(HandshakeOnly(application), host="127.0.0.1", port=int(port), log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
