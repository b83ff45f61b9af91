"""The port to MCP servers, and one that plays what a test wrote for it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mcpgateway.client.call import Progress
from mcpgateway.client.content import ToolAnswer
from mcpgateway.servers.domain import Catalogue, ServerId, Target
from mcpgateway.servers.errors import UpstreamFailed

OnProgress = Callable[[Progress], None]


class Upstream(Protocol):
    """What the service needs of MCP servers."""

    async def list_tools(self, target: Target) -> Catalogue:
        """Return what the server offers, within its connect timeout.

        Raises:
            UpstreamFailed: It does not answer, or not as it should.
        """
        ...

    async def call_tool(
        self, target: Target, tool: str, arguments_json: bytes, on_progress: OnProgress
    ) -> ToolAnswer:
        """Call a tool once and return what it answers; cancelling tells the server.

        Raises:
            UpstreamFailed: The tool did not answer; it says whether it may have run.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """How one call goes: progress first, then, when released, the answer or the failure."""

    answer: ToolAnswer | UpstreamFailed
    progress: Sequence[Progress] = ()
    released: asyncio.Event | None = None


@dataclass(slots=True)
class ScriptedUpstream:
    """Servers that answer what they were given, and note what they were asked.

    Attributes:
        catalogues: What each server lists, or how it fails.
        calls: What the next calls do, in order; one more than these is an error of the test.
        called: The tools called so far, with their arguments.
        cancelled: The tools whose calls were cancelled.
    """

    catalogues: Mapping[ServerId, Catalogue | UpstreamFailed] = field(default_factory=dict)
    calls: list[ScriptedCall] = field(default_factory=list)
    called: list[tuple[str, bytes]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    async def list_tools(self, target: Target) -> Catalogue:
        """Return the catalogue written for the server."""
        match self.catalogues[target.server.id]:
            case Catalogue() as catalogue:
                return catalogue
            case failure:
                raise failure

    async def call_tool(
        self, target: Target, tool: str, arguments_json: bytes, on_progress: OnProgress
    ) -> ToolAnswer:
        """Play the next call."""
        self.called.append((tool, arguments_json))
        call = self.calls.pop(0)
        for progress in call.progress:
            on_progress(progress)
        if call.released is not None:
            try:
                await call.released.wait()
            except asyncio.CancelledError:
                self.cancelled.append(tool)
                raise
        if isinstance(call.answer, UpstreamFailed):
            raise call.answer
        return call.answer
