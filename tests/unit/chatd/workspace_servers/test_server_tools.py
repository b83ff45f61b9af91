"""Calls of tools of workspace servers that end before they begin."""

import asyncio

from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import (
    Dispatch,
    Ended,
    Execution,
    Executor,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ExecutionId
from chatd.workspace_servers.domain.definition import NO_SERVERS, Definitions
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.engine.server_tools import CANCELLED, ServerTools
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspace_servers.engine.sessions import ServerSessions
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.mcp.v1 import tool_pb2
from parley.clock import FakeClock
from parley.tasks import BackgroundTasks
from support.chatd.workspace_servers.counting_reducer import CountingReducer
from support.chatd.workspace_servers.in_memory_trust import InMemoryTrustedServers
from support.chatd.workspace_servers.scripted_server import EachScripted
from support.chatd.workspaces.workspace_calls import ANN, CHAT
from support.host.supervised import supervision

LOCATION = WorkspaceLocation("node:1", "workspace")


class NoFiles:
    """No workspace defines a server."""

    async def read(self, place: ServerPlace) -> Definitions:
        return NO_SERVERS


async def without_files(execution: Execution, result: tool_pb2.CallResult) -> Outcome:
    return Outcome(ToolOutcome.DONE, "{}")


async def test_a_call_that_is_cancelled_before_it_begins_has_ended() -> None:
    clock = FakeClock()
    call = ToolCall("call", "ws_plain__echo", "{}")
    dispatch = Dispatch(ExecutionId("execution"), call, Executor.TOOLRUNNER, "")
    spec = ToolSpec("ws_plain__echo", "", "{}", Executor.TOOLRUNNER, "generation")
    execution = Execution(TurnContext(CHAT, ANN), 1, dispatch, spec)
    async with BackgroundTasks(supervision(clock)) as tasks:
        sessions = ServerSessions(EachScripted(), tasks, clock, CountingReducer())
        published: list[str] = []
        servers = WorkspaceServers(
            NoFiles(), InMemoryTrustedServers(), sessions, clock, published.append
        )
        tools = ServerTools(servers, tasks, without_files)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(tools.execute(execution, LOCATION))
            await asyncio.sleep(0)  # noqa: TID251 (the call is made, and has not begun)
            tools.cancel(execution)
        assert waiting.result() == CANCELLED
        assert tools.find(execution) == Ended(CANCELLED)
