"""A server that closes its stream after every call: whatever is made again, nothing is kept."""

import asyncio
import gc
import os
from dataclasses import dataclass

import pytest

from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.session import TaskSession
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Catalogue, Transport
from parley.egress import Policy
from support.host.supervised import supervision
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.closing_server import closing_server
from support.mcpgateway.values import a_server, a_target

WARM_UP = 20
RECONNECTS = 100
RECONNECTS_FULL_SIZE = 1000


@dataclass(frozen=True, slots=True)
class Kept:
    """How much of what a reconnection needs is there."""

    sessions: int
    catalogues: int
    tasks: int
    files: int

    @classmethod
    def now(cls) -> "Kept":
        """Count it, after what is unreachable is gone."""
        gc.collect()
        objects = gc.get_objects()
        return cls(
            sum(isinstance(each, TaskSession) for each in objects),
            sum(isinstance(each, Catalogue) for each in objects),
            len(asyncio.all_tasks()),
            len(os.listdir("/proc/self/fd")),
        )

    def exceeds(self, other: "Kept") -> bool:
        """Return whether anything is more than a reconnection that is under way explains."""
        return (
            self.sessions > other.sessions + 1
            or self.catalogues > other.catalogues
            or self.tasks > other.tasks + 5
            or self.files > other.files + 5
        )


async def test_reconnections_keep_nothing(request: pytest.FixtureRequest) -> None:
    is_full = request.config.getoption("--full-size")
    reconnects = RECONNECTS_FULL_SIZE if is_full else RECONNECTS
    async with (
        asyncio.timeout(280),
        closing_server() as server,
        Sessions.open(Policy().with_url(server.url), supervision()) as sessions,
    ):
        target = a_target(a_server(url=server.url, transport=Transport.SSE))

        async def reconnected(times: int) -> Kept:
            for _ in range(times):
                await sessions.list_tools(target)
                answer = await sessions.call_tool(
                    target, "echo", b"{}", ignore_progress, cancel_question
                )
                assert answer == ToolAnswer(False, (TextPart("said"),))
            return Kept.now()

        before = await reconnected(WARM_UP)
        after = await reconnected(reconnects)
        assert not after.exceeds(before), (before, after)
        assert server.calls == WARM_UP + reconnects
        assert server.opened >= server.calls
        assert len(server.streams) <= 2
