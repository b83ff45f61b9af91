"""Sessions with one MCP server of a test, and calls of its tools."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import pytest

from mcpgateway.client.call import Progress
from mcpgateway.client.content import TextPart
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Target, Transport
from mcpgateway.servers.errors import UpstreamFailed
from parley.egress import Policy
from support.host.supervised import supervision
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.servers import START_S_MAX

#: How a server is spoken to: without sessions, with them, and with events sent by it.
KINDS = ("modern", "mcp", "sse")


@dataclass(slots=True)
class Seen:
    """Progress as it came."""

    all: list[Progress] = field(default_factory=list)
    first: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, progress: Progress) -> None:
        """Keep progress."""
        self.all.append(progress)
        self.first.set()


def place_of(kind: str, port: int) -> tuple[str, Transport]:
    """Return the address of the server of a kind, and its transport."""
    if kind == "sse":
        return f"http://127.0.0.1:{port}/sse", Transport.SSE
    return f"http://127.0.0.1:{port}/mcp", Transport.STREAMABLE_HTTP


@asynccontextmanager
async def sessions_to(url: str) -> AsyncIterator[Sessions]:
    """Give sessions that may reach a server, within a bound for what never ends."""
    # Servers are started within it.
    async with (
        asyncio.timeout(3 * START_S_MAX),
        Sessions.open(Policy().with_url(url), supervision()) as sessions,
    ):
        yield sessions


async def counted(sessions: Sessions, target: Target, what: str) -> int:
    """Ask a server of sessions or kinds how often something happened to it."""
    arguments = msgspec.json.encode({"what": what})
    answer = await sessions.call_tool(target, "count", arguments, ignore_progress, cancel_question)
    (part,) = answer.parts
    assert isinstance(part, TextPart)
    return int(part.text)


async def failure_of(sessions: Sessions, target: Target, tool: str, seen: Seen) -> UpstreamFailed:
    """Call a tool that will fail."""
    with pytest.raises(UpstreamFailed) as caught:
        await sessions.call_tool(target, tool, b"{}", seen.note, cancel_question)
    return caught.value
