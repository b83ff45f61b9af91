"""The tools of a process, whoever executes them."""

from contextlib import AsyncExitStack

from chatd.assembly.ground import Ground
from chatd.clients.mcpgateway import McpTools
from chatd.clients.measured import MeasuredTools
from chatd.clients.routing import RoutedTools
from chatd.clients.toolrunner import WorkspaceTools
from chatd.domain.ports import Tools
from chatd.domain.tools import Executor
from chatd.domain.workspaces.ports import Sites
from chatd.news import follow_servers
from chatd.store.attachments import Attachments
from parley.identity import ServiceName
from parley.tasks import BackgroundTasks


async def open_tools(
    ground: Ground, stack: AsyncExitStack, *, sites: Sites, lifecycle: Tools
) -> Tools:
    """Return the tools of all executors, reached over channels that the stack closes."""
    clock = ground.process.clock
    mcpgateways = await stack.enter_async_context(
        ground.neighbours.channels(ServiceName.MCPGATEWAY, ground.settings.mcpgateway)
    )
    of_servers = McpTools(mcpgateways, clock)
    background = await stack.enter_async_context(BackgroundTasks(ground.process.supervision))
    background.keep("servers.follow", lambda: follow_servers(ground.bus, of_servers))
    routed = RoutedTools(
        {
            Executor.TOOLRUNNER: WorkspaceTools(
                ground.toolrunners, clock, Attachments(ground.pool), sites
            ),
            Executor.CHATD: lifecycle,
            Executor.MCPGATEWAY: of_servers,
        }
    )
    measured = MeasuredTools(routed, clock)
    stack.callback(measured.publish(ground.process.telemetry))
    return measured
