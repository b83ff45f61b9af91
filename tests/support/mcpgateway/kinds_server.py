"""A program: an MCP server of any kind, with tools that wait, talk and grow.

It is a modern one without sessions, or of the handshake era with them, over HTTP or SSE. It has the
tools of `session_server` too.

python -m support.mcpgateway.kinds_server PORT modern|mcp|sse
"""

import asyncio
import itertools
import logging
import sys

import uvicorn
from mcp.server.mcpserver import Context
from starlette.types import ASGIApp

from support.mcpgateway.session_server import HandshakeOnly, seen, server

TALK_S = 0.1

released = asyncio.Event()


@server.tool(structured_output=False)
async def hold(context: Context[None, None]) -> str:
    """Tell of progress, then wait until all calls are released."""
    seen["hold"] += 1
    await context.report_progress(1, 2, "half")
    try:
        await released.wait()
    except asyncio.CancelledError:
        seen["cancelled"] += 1
        raise
    return "released"


@server.tool(structured_output=False)
def release() -> str:
    """Let all calls end that are held."""
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


def main(port: str, kind: str) -> None:
    """Serve until killed."""
    application: ASGIApp = server.sse_app() if kind == "sse" else server.streamable_http_app()
    if kind != "modern":
        application = HandshakeOnly(application)
    logging.getLogger().setLevel(logging.ERROR)
    uvicorn.run(application, host="127.0.0.1", port=int(port), log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
