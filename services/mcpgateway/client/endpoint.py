"""One MCP server as configured: its connections, its protocol, and the sessions of users."""

import asyncio
from dataclasses import dataclass, field

import httpx2
from mcp import Client
from mcp_types import DiscoverResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcpgateway.client.session import TaskSession


@dataclass(slots=True)
class Endpoint:
    """One server as configured: its connections, protocol version and sessions."""

    server_id: str
    http: httpx2.AsyncClient
    used_at: float
    mode: str = "auto"
    discovered: DiscoverResult | None = None
    operations: int = 0
    listener: "asyncio.Task[None] | None" = None
    listens_for: str = ""
    sessions: dict[tuple[str, int, str, str, str], TaskSession] = field(default_factory=dict)

    def record_protocol(self, client: Client) -> bool:
        """Record the server's protocol version; return whether it has sessions."""
        discovered = client.session.discover_result
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS and discovered is not None:
            self.mode, self.discovered = client.protocol_version, discovered
            return False
        self.mode, self.discovered = "legacy", None
        return True

    def reset_protocol(self, session: TaskSession | None) -> None:
        """Reset the detected protocol, and stop the session."""
        self.mode, self.discovered = "auto", None
        if session is not None:
            session.stop()


async def close_endpoint(endpoint: Endpoint) -> None:
    """Stop the sessions, wait a short time for their end, then close their connections."""
    if endpoint.listener is not None:
        endpoint.listener.cancel()
    for session in endpoint.sessions.values():
        session.stop()
    ending = [session.ended.wait() for session in endpoint.sessions.values()]
    try:
        async with asyncio.timeout(2), asyncio.TaskGroup() as tasks:
            for each in ending:
                tasks.create_task(each)
    except TimeoutError:
        pass
    await endpoint.http.aclose()
