"""A program: an MCP server that tells what befell it.

It is of the handshake era and keeps sessions, over HTTP or SSE, or it is a modern one without them.

python mcp_session_server.py PORT mcp|sse|modern
"""

import asyncio
import itertools
import logging
import sys
from collections import Counter

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

TALK_S = 0.1

seen: Counter[str] = Counter()
released = asyncio.Event()
server = MCPServer("sessions")


@server.tool(structured_output=False)
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool(structured_output=False)
def count(what: str) -> str:
    """Tell how often something happened.

    That is one of `discover`, `sessions`, `deleted`, `wait`, `cancelled`, `talk` and `silenced`.
    """
    return str(seen[what])


@server.tool(structured_output=False)
async def wait(context: Context[None, None]) -> str:
    """Tell of progress, then wait until all calls are released."""
    seen["wait"] += 1
    await context.report_progress(1, 2, "half")
    try:
        await released.wait()
    except asyncio.CancelledError:
        seen["cancelled"] += 1
        raise
    return "released"


@server.tool(structured_output=False)
def release() -> str:
    """Let all calls end that wait."""
    released.set()
    return "done"


@server.tool(structured_output=False)
async def talk(context: Context[None, None]) -> str:
    """Tell of progress for ever."""
    seen["talk"] += 1
    try:
        for number in itertools.count(1):
            await context.report_progress(number)
            await asyncio.sleep(TALK_S)  # noqa: TID251 (a program of its own)
    except asyncio.CancelledError:
        seen["silenced"] += 1
        raise
    return "never"


@server.tool(structured_output=False)
async def grow(context: Context[None, None]) -> str:
    """Add a tool, and announce it to everyone who listens."""
    server.add_tool(lambda: "", name="grown", description="New.")
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()
    return "grown"


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


def main(port: str, kind: str) -> None:
    """Serve until killed."""
    application: ASGIApp = server.sse_app() if kind == "sse" else server.streamable_http_app()
    if kind != "modern":
        application = HandshakeOnly(application)
    logging.getLogger().setLevel(logging.ERROR)
    uvicorn.run(application, host="127.0.0.1", port=int(port), log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
