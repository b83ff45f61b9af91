"""Wiring of the slice `workspace_servers`."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.bus_handlers import TRUSTED_SERVERS_TOPIC, follow_trusted_servers
from chatd.resources import Resources
from chatd.workspace_servers.clients.definition_files import NodeDefinitionFiles
from chatd.workspace_servers.clients.line_reducer import ProcessLineReducer
from chatd.workspace_servers.clients.server_process import NodeServerProcesses
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspace_servers.engine.sessions import ServerSessions
from chatd.workspace_servers.store.trusted_servers import PostgresTrustedServers
from parley.bus import Notice
from parley.tasks import BackgroundTasks


@dataclass(frozen=True, slots=True)
class WorkspaceServerComponents:
    """The servers of workspaces, and the owner of their sessions."""

    servers: WorkspaceServers
    tasks: BackgroundTasks


async def open_workspace_servers(
    resources: Resources, stack: AsyncExitStack
) -> WorkspaceServerComponents:
    """Return the servers of workspaces; the stack stops those that this process started."""
    process = resources.process
    tasks = await stack.enter_async_context(BackgroundTasks(process.supervision))
    sessions = ServerSessions(
        NodeServerProcesses(resources.toolrunners, process.new_id),
        tasks,
        process.clock,
        ProcessLineReducer(),
    )
    stack.callback(sessions.close)
    servers = WorkspaceServers(
        NodeDefinitionFiles(resources.toolrunners),
        PostgresTrustedServers(resources.pool),
        sessions,
        process.clock,
        lambda workspace_id: resources.bus.publish(Notice(TRUSTED_SERVERS_TOPIC, workspace_id, 0)),
    )
    tasks.keep("trusted_servers.follow", lambda: follow_trusted_servers(resources.bus, servers))
    return WorkspaceServerComponents(servers, tasks)
