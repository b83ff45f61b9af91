"""Servers of one workspace with a real toolrunner, and calls of their tools as turns make them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import CallProgress, ToolCall, ToolOutcome
from chatd.content.domain.tools import Dispatch, Execution, Executor, ToolSpec
from chatd.content.domain.turn_context import CallProcess, TurnContext
from chatd.primitives.domain.ids import ExecutionId
from chatd.tools.mcp_results import ResultFiles
from chatd.workspace_servers.clients.definition_files import NodeDefinitionFiles
from chatd.workspace_servers.clients.line_reducer import ProcessLineReducer
from chatd.workspace_servers.clients.server_process import NodeServerProcesses
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.state import ServerStatus
from chatd.workspace_servers.engine.server_tools import ServerTools
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspace_servers.engine.sessions import ServerSessions
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.clock import SystemClock
from parley.rpc import Channels
from parley.tasks import BackgroundTasks
from support.chatd.workspace_servers import stdio_server
from support.chatd.workspace_servers.in_memory_trust import InMemoryTrustedServers
from support.chatd.workspaces.in_memory_attachments import InMemoryAttachmentStore
from support.chatd.workspaces.workspace_calls import ANN, CHAT
from support.host.supervised import supervision
from support.toolrunner.node import House, connected

#: That of the system: the packages of the tests are not readable in a sandbox.
PLAIN = ("/usr/bin/python3", Path(stdio_server.__file__).read_text())


@dataclass(slots=True)
class Reported:
    """Keeps what running calls report."""

    updates: list[object] = field(default_factory=list)

    def report(self, tool_call_id: str, update: str | CallProcess | CallProgress) -> None:
        self.updates.append(update)

    def reset(self, tool_call_id: str) -> None:
        """Do nothing."""


@dataclass(slots=True)
class ServerCalls:
    """The servers of the workspace of one chat."""

    servers: WorkspaceServers
    tools: ServerTools
    trusted: InMemoryTrustedServers
    sessions: ServerSessions
    location: WorkspaceLocation
    root: Path
    mode: ChatMode = ChatMode.ORDINARY
    made: int = 0
    reported: Reported = field(default_factory=Reported)

    @property
    def place(self) -> ServerPlace:
        return ServerPlace(CHAT, ANN, self.location, self.mode is not ChatMode.ORDINARY)

    def define(self, **servers: dict[str, Any]) -> None:
        """Write the file that defines servers."""
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))

    def define_plain(self, behaviour: str = "", **more: Any) -> None:
        """Define the server in plain Python, under the name `plain`."""
        interpreter, program = PLAIN
        self.define(plain={"command": interpreter, "args": ["server.py", behaviour], **more})
        (self.root / "server.py").write_text(program)

    async def status(self, name: str = "plain") -> ServerStatus:
        statuses, problem = await self.servers.statuses(self.place)
        assert not problem
        return next(each for each in statuses if each.definition.name == name)

    async def trust(self, name: str = "plain") -> ServerStatus:
        digest = (await self.status(name)).definition.digest
        return await self.servers.trust(self.place, name, digest, ANN.id)

    async def offered(self) -> dict[str, ToolSpec]:
        specs = await self.tools.offered(self._context(), self.location, "generation")
        return {spec.name: spec for spec in specs}

    async def execution(self, name: str, **arguments: Any) -> Execution:
        spec = (await self.offered())[name]
        self.made += 1
        call = ToolCall(f"call-{self.made}", name, json.dumps(arguments))
        execution_id = ExecutionId(f"execution-{self.made}")
        return Execution(
            self._context(),
            1,
            Dispatch(execution_id, call, Executor.TOOLRUNNER, "", self.mode),
            spec,
        )

    async def call(self, name: str, **arguments: Any) -> tuple[ToolOutcome, dict[str, Any]]:
        execution = await self.execution(name, **arguments)
        outcome = await self.tools.execute(execution, self.location)
        return outcome.outcome, json.loads(outcome.result_json)

    def _context(self) -> TurnContext:
        return TurnContext(CHAT, ANN, mode=self.mode, progress=self.reported)


@asynccontextmanager
async def server_calls(house: House) -> AsyncIterator[ServerCalls]:
    """Yield the servers of a workspace on a node that runs."""
    clock = SystemClock()
    async with connected(house) as client, BackgroundTasks(supervision()) as tasks:
        channels = Channels((house.address,), lambda _: client.channel)
        trusted = InMemoryTrustedServers()
        processes = NodeServerProcesses(channels, client.new_id)
        sessions = ServerSessions(processes, tasks, clock, ProcessLineReducer())
        published: list[str] = []
        servers = WorkspaceServers(
            NodeDefinitionFiles(channels), trusted, sessions, clock, published.append
        )
        tools = ServerTools(servers, tasks, ResultFiles(InMemoryAttachmentStore()).unstreamed)
        location = WorkspaceLocation(str(house.address), client.context.workspace_id)
        root = house.data / "workspaces" / client.context.workspace_id / "files"
        try:
            yield ServerCalls(servers, tools, trusted, sessions, location, root)
        finally:
            tools.close()
            sessions.close()
