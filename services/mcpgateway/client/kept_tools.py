"""The tools of a listing that are kept: those that can be offered, within limits of the server."""

from collections.abc import Iterable
from typing import Final

from mcp_types import Tool as ProtocolTool

from mcpgateway.client.translation import usable_tool
from mcpgateway.servers.domain import Tool
from parley.tool_schemas import Budget

TOOLS_MAX: Final = 2000
#: Of names, descriptions and schemas of all tools of a server, as they are kept.
CATALOGUE_BYTES_MAX: Final = 8 * 1024 * 1024
#: Of the schemas of all tools of a server with their references resolved, also of dropped ones.
CATALOGUE_NODES_MAX: Final = 500_000


class KeptTools:
    """Collects the tools of a listing, page by page.

    Attributes:
        tools: The tools that are kept, by name, in the order of the server.
        dropped: How many others it listed.
        is_full: Whether a limit is reached: of further tools none would be kept.
    """

    def __init__(
        self, bytes_max: int = CATALOGUE_BYTES_MAX, nodes_max: int = CATALOGUE_NODES_MAX
    ) -> None:
        self.tools: dict[str, Tool] = {}
        self.dropped = 0
        self.is_full = False
        self._room = bytes_max
        self._budget = Budget(nodes_max)

    def add(self, listed: Iterable[ProtocolTool]) -> None:
        """Keep the tools of a page that can be offered, up to the first beyond a limit."""
        for each in listed:
            tool = None if self.is_full else self._fitting(each)
            if tool is None:
                self.dropped += 1
            else:
                self.tools[tool.name] = tool
                self._room -= tool.size_bytes

    def _fitting(self, listed: ProtocolTool) -> Tool | None:
        """Return a tool that can be offered and is not beyond a limit."""
        if len(self.tools) + self.dropped >= TOOLS_MAX or self._budget.is_spent:
            self.is_full = True
            return None
        tool = usable_tool(listed, self._budget)
        if tool is None or tool.name in self.tools:
            return None
        if tool.size_bytes > self._room:
            self.is_full = True
            return None
        return tool
