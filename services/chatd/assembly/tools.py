"""The tools of a process, whoever executes them."""

from contextlib import AsyncExitStack

from chatd.clients.mcpgateway import McpTools
from chatd.clients.routing import RoutedTools
from chatd.clients.toolrunner import WorkspaceTools
from chatd.domain.ports import Tools
from chatd.domain.tools import Executor
from chatd.settings import Settings
from parley.identity import ServiceName
from parley.process import Neighbours


async def open_tools(settings: Settings, neighbours: Neighbours, stack: AsyncExitStack) -> Tools:
    """Return the tools of all executors, reached over channels that the stack closes."""
    toolrunners = await stack.enter_async_context(
        neighbours.channels(ServiceName.TOOLRUNNER, settings.toolrunner)
    )
    mcpgateways = await stack.enter_async_context(
        neighbours.channels(ServiceName.MCPGATEWAY, settings.mcpgateway)
    )
    return RoutedTools(
        {
            Executor.TOOLRUNNER: WorkspaceTools(toolrunners),
            Executor.MCPGATEWAY: McpTools(mcpgateways),
        }
    )
