"""The MCP server of the demo: the public time server, served over streamable HTTP.

    MCP_DEMO_LISTEN=127.0.0.1:8931 python -m mcpgateway.demo

It ends on SIGTERM, and with its parent when MCP_DEMO_PARENT_PID names it.
"""

import logging
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import uvicorn
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp_server_time.server import create_server
from mcp_types import INVALID_PARAMS
from starlette.applications import Starlette

from parley.process.signals import end_with_parent
from parley.settings import SettingsError, read, setting

PREFIX = "MCP_DEMO"


@dataclass(frozen=True, slots=True)
class HostPort:
    """The address to listen on."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse host:port.

        Raises:
            ValueError: The text is not host:port.
        """
        host, _, port = text.rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{text!r} is not HOST:PORT")
        return cls(host, int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the demo server."""

    listen: HostPort = setting("The host:port where the demo's MCP server listens.")
    parent_pid: int | None = setting(
        "The process that started it and with which it ends.", default=None, at_least=1
    )


def time_server() -> MCPServer[Any]:
    """Return the time server; it refuses prompts, of which it has none, as the protocol says.

    The SDK would answer an internal error.
    """
    server: MCPServer[Any] = create_server("UTC")

    async def refuse_prompts(
        ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        if ctx.method == "prompts/get":
            name = (ctx.params or {}).get("name")
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {name}")
        return await call_next(ctx)

    server.middleware.append(refuse_prompts)
    return server


def application(host: str) -> Starlette:
    """Return the time server as an ASGI application; its MCP endpoint is /mcp.

    The SDK checks the Host header of those that listen on loopback only, against DNS rebinding.
    """
    application: Starlette = time_server().streamable_http_app(host=host)
    return application


def main(environment: Mapping[str, str]) -> int:
    """Serve until SIGTERM; return the exit code."""
    try:
        settings = read(Settings, environment, prefix=PREFIX)
    except SettingsError as error:
        print("\n".join(f"mcp demo: {problem}" for problem in error.problems), file=sys.stderr)
        return 2
    if settings.parent_pid is not None and not end_with_parent(settings.parent_pid):
        print("mcp demo: its parent is gone, so it does not start", file=sys.stderr)
        return 1
    # Before uvicorn installs its handler, and again after it has shut down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    served = application(settings.listen.host)
    logging.getLogger().setLevel(logging.WARNING)
    uvicorn.run(
        served,
        host=settings.listen.host,
        port=settings.listen.port,
        log_level="warning",
        timeout_graceful_shutdown=2,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))  # noqa: TID251 (read here, once)
