"""Wiring of the slice `tools`."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.bus_handlers import follow_servers
from chatd.chats.store.attachments import Attachments
from chatd.chats.store.cleanup.cancelled_calls import CancelledCalls
from chatd.content.domain.tools import Executor, Tools
from chatd.primitives.domain.ids import ChatId
from chatd.resources import Resources
from chatd.tools.acknowledgements import Acknowledgements
from chatd.tools.cancellations import Cancellations
from chatd.tools.earlier_writers import NodeWriters
from chatd.tools.find_tools import SearchingTools
from chatd.tools.local import LocalTools, NamedTools
from chatd.tools.mcp_results import ResultFiles
from chatd.tools.mcpgateway import McpTools
from chatd.tools.metrics import MeasuredTools
from chatd.tools.routing import RoutedTools
from chatd.tools.toolrunner import WorkspaceTools
from chatd.workspace_servers.engine.server_tools import ServersOfTurns, ServerTools
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspace_servers.wiring import open_workspace_servers
from chatd.workspaces.domain.ports import WorkspaceLocator
from parley.identity import ServiceName
from parley.tasks import BackgroundTasks


@dataclass(frozen=True, slots=True)
class ToolComponents:
    """The tools of all executors, the MCP servers among these, and what acknowledges results.

    Attributes:
        servers: The MCP servers of administrators.
        workspace_servers: Those inside workspaces.
    """

    tools: Tools
    servers: McpTools
    workspace_servers: WorkspaceServers
    acknowledgements: Acknowledgements

    @property
    def servers_of_turns(self) -> ServersOfTurns:
        """The MCP servers of turns, wherever these run."""
        return ServersOfTurns(self.servers, self.workspace_servers)


async def open_tools(
    resources: Resources,
    stack: AsyncExitStack,
    *,
    locator: WorkspaceLocator,
    local: Sequence[NamedTools],
    below: Callable[[ChatId], Awaitable[Sequence[ChatId]]],
) -> ToolComponents:
    """Return the tools of all executors; `below` returns the chats below a chat.

    The stack closes their channels.
    """
    clock = resources.process.clock
    mcpgateways = await stack.enter_async_context(
        resources.neighbours.channels(ServiceName.MCPGATEWAY, resources.settings.mcpgateway)
    )
    attachments = Attachments(resources.pool)
    of_servers = McpTools(mcpgateways, clock, ResultFiles(attachments))
    background = await stack.enter_async_context(BackgroundTasks(resources.process.supervision))
    background.keep("servers.follow", lambda: follow_servers(resources.bus, of_servers))
    inside = await open_workspace_servers(resources, stack)
    of_inside = ServerTools(inside.servers, inside.tasks, ResultFiles(attachments).unstreamed)
    stack.callback(of_inside.close)
    writers = NodeWriters(resources.toolrunners, locator, below)
    of_workspaces = WorkspaceTools(
        resources.toolrunners, clock, attachments, locator, of_inside, writers
    )
    acknowledgements = Acknowledgements(
        {Executor.TOOLRUNNER: of_workspaces, Executor.MCPGATEWAY: of_servers}, clock
    )
    background.keep("executions.acknowledge", acknowledgements.run)
    stack.push_async_callback(acknowledgements.flush)
    routed = RoutedTools(
        {
            Executor.TOOLRUNNER: of_workspaces,
            Executor.CHATD: SearchingTools(LocalTools(local), of_servers, of_workspaces),
            Executor.MCPGATEWAY: of_servers,
        },
        acknowledgements.dispatched,
    )
    cancellations = Cancellations(CancelledCalls(resources.pool), routed, clock)
    background.keep("executions.cancel", cancellations.run)
    measured = MeasuredTools(routed, clock)
    stack.callback(measured.publish(resources.process.telemetry))
    return ToolComponents(measured, of_servers, inside.servers, acknowledgements)
