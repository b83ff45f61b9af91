"""The port to MCP servers, and a scripted fake for tests."""

from collections.abc import Callable
from typing import Protocol

from mcpgateway.client.call import Progress
from mcpgateway.client.content import ToolAnswer
from mcpgateway.servers.domain import Catalogue, Target

OnProgress = Callable[[Progress], None]


class Upstream(Protocol):
    """The operations on MCP servers that the service uses."""

    async def list_tools(self, target: Target) -> Catalogue:
        """Return the server's tools, within its connect timeout.

        Raises:
            UpstreamFailed: It does not respond, or its response is invalid.
        """
        ...

    async def call_tool(
        self, target: Target, tool: str, arguments_json: bytes, on_progress: OnProgress
    ) -> ToolAnswer:
        """Call a tool once and return its answer; on cancellation the server is notified.

        Raises:
            UpstreamFailed: The tool did not respond; the error contains whether it may have run.
        """
        ...
