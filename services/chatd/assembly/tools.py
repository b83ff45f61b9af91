"""The tools of a process, whoever executes them."""

import asyncio
from contextlib import AsyncExitStack

from chatd.clients.mcpgateway import McpTools
from chatd.clients.routing import RoutedTools
from chatd.clients.toolrunner import WorkspaceTools
from chatd.clients.workspace import Shelf
from chatd.domain.ports import Tools
from chatd.domain.tools import Executor
from chatd.domain.workspaces.ports import Sites
from chatd.news import follow_servers
from chatd.settings import Settings
from parley.bus import Bus
from parley.clock import Clock
from parley.identity import ServiceName
from parley.process import Neighbours
from parley.rpc import Channels


async def open_tools(
    settings: Settings,
    neighbours: Neighbours,
    clock: Clock,
    bus: Bus,
    stack: AsyncExitStack,
    *,
    toolrunners: Channels,
    shelf: Shelf,
    sites: Sites,
    lifecycle: Tools,
) -> Tools:
    """Return the tools of all executors, reached over channels that the stack closes."""
    mcpgateways = await stack.enter_async_context(
        neighbours.channels(ServiceName.MCPGATEWAY, settings.mcpgateway)
    )
    of_servers = McpTools(mcpgateways, clock)
    background = await stack.enter_async_context(asyncio.TaskGroup())
    following = background.create_task(follow_servers(bus, of_servers))
    stack.callback(following.cancel)
    return RoutedTools(
        {
            Executor.TOOLRUNNER: WorkspaceTools(toolrunners, clock, shelf, sites),
            Executor.CHATD: lifecycle,
            Executor.MCPGATEWAY: of_servers,
        }
    )
