"""One MCP server as configured: its connections, its protocol, and the sessions of users."""

import asyncio
from dataclasses import dataclass, field

import httpx2
from mcp import Client
from mcp_types import DiscoverResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcpgateway.client.session import TaskSession

#: The server, its version, the user, the chat and the credentials of a session.
SessionKey = tuple[str, int, str, str, str]


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
    #: Those that new operations use, and those that were replaced and have not ended yet.
    sessions: dict[SessionKey, TaskSession] = field(default_factory=dict)
    retired: list[tuple[SessionKey, TaskSession]] = field(default_factory=list)

    @property
    def all_sessions(self) -> tuple[tuple[SessionKey, TaskSession], ...]:
        """The sessions, with those that only the operations use that run in them."""
        return (*self.sessions.items(), *self.retired)

    def record_protocol(self, client: Client) -> bool:
        """Record the server's protocol version; return whether it has sessions."""
        discovered = client.session.discover_result
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS and discovered is not None:
            self.mode, self.discovered = client.protocol_version, discovered
            return False
        self.mode, self.discovered = "legacy", None
        return True

    def reset_protocol(self) -> None:
        """Forget the detected protocol, so that the next operation detects it."""
        self.mode, self.discovered = "auto", None

    def retire(self, key: SessionKey, session: TaskSession) -> None:
        """Replace a session of which the server knows nothing any more.

        Its other operations have answers of their own to come, so they are not ended.
        """
        session.retire()
        if self.sessions.get(key) is session:
            del self.sessions[key]
            self.drop_ended()
            self.retired.append((key, session))

    def drop_ended(self) -> None:
        """Drop the replaced sessions that have ended."""
        self.retired = [each for each in self.retired if not each[1].ended.is_set()]


async def close_endpoint(endpoint: Endpoint) -> None:
    """Stop the sessions, wait a short time for their end, then close their connections."""
    if endpoint.listener is not None:
        endpoint.listener.cancel()
    for _, session in endpoint.all_sessions:
        session.stop()
    ending = [session.ended.wait() for _, session in endpoint.all_sessions]
    try:
        async with asyncio.timeout(2), asyncio.TaskGroup() as tasks:
            for each in ending:
                tasks.create_task(each)
    except TimeoutError:
        pass
    await endpoint.http.aclose()
