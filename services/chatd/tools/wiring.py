"""The tools of a process, whoever executes them."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.bus_handlers import follow_servers
from chatd.chats.store.attachments import Attachments
from chatd.content.domain.tools import Executor, Tools
from chatd.models.engine.configuration import ConfigurationCache
from chatd.primitives.domain.ids import ChatId
from chatd.resources import Ground
from chatd.tools.mcpgateway import McpTools
from chatd.tools.metrics import MeasuredTools
from chatd.tools.routing import RoutedTools
from chatd.tools.toolrunner import WorkspaceTools
from chatd.workspaces.domain.ports import Sites
from parley.identity import ServiceName
from parley.tasks import BackgroundTasks


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools of all executors, and the MCP servers among these."""

    tools: Tools
    servers: McpTools


async def open_tools(
    ground: Ground,
    configuration: ConfigurationCache,
    stack: AsyncExitStack,
    *,
    sites: Sites,
    lifecycle: Tools,
) -> OfferedTools:
    """Return the tools of all executors, reached over channels that the stack closes."""

    async def chosen(chat_id: ChatId) -> tuple[str, ...]:
        return (await configuration.chat(chat_id)).mcp_server_ids

    clock = ground.process.clock
    mcpgateways = await stack.enter_async_context(
        ground.neighbours.channels(ServiceName.MCPGATEWAY, ground.settings.mcpgateway)
    )
    of_servers = McpTools(mcpgateways, clock, chosen)
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
    return OfferedTools(measured, of_servers)
