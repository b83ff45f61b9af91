"""Calls of tools of workspace servers that end before they begin."""

import asyncio
import json
from dataclasses import dataclass, replace

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
from chatd.workspace_servers.domain.definition import NO_SERVERS, Definitions, ServerDefinition
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.state import ServerFailed
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
from support.host.virtual_time import LoopClock, in_virtual_time

ECHO = ToolSpec("ws_plain__echo", "", "{}", Executor.TOOLRUNNER, "generation")
LOCATION = WorkspaceLocation("node:1", "workspace")


@dataclass(frozen=True, slots=True)
class Files:
    """Every workspace defines the same servers."""

    definitions: Definitions = NO_SERVERS

    async def read(self, place: ServerPlace) -> Definitions:
        return self.definitions


async def without_files(execution: Execution, result: tool_pb2.CallResult) -> Outcome:
    return Outcome(ToolOutcome.DONE, "{}")


def calling(spec: ToolSpec) -> Execution:
    call = ToolCall("call", spec.name, "{}")
    dispatch = Dispatch(ExecutionId("execution"), call, Executor.TOOLRUNNER, "")
    return Execution(TurnContext(CHAT, ANN), 1, dispatch, spec)


async def test_a_call_that_is_cancelled_before_it_begins_has_ended() -> None:
    clock = FakeClock()
    execution = calling(ECHO)
    async with BackgroundTasks(supervision(clock)) as tasks:
        sessions = ServerSessions(EachScripted(), tasks, clock, CountingReducer())
        published: list[str] = []
        servers = WorkspaceServers(
            Files(), InMemoryTrustedServers(), sessions, clock, published.append
        )
        tools = ServerTools(servers, tasks, without_files)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(tools.execute(execution, LOCATION))
            await asyncio.sleep(0)  # noqa: TID251 (the call is made, and has not begun)
            tools.cancel(execution)
        assert waiting.result() == CANCELLED
        assert tools.find(execution) == Ended(CANCELLED)


@in_virtual_time
async def test_a_call_in_the_pause_after_a_failure_is_told_when_to_try_again() -> None:
    definition = ServerDefinition("plain", "run", digest="digest")
    trusted = InMemoryTrustedServers()
    await trusted.trust(LOCATION.workspace_id, "plain", "digest", ANN.id)
    processes = EachScripted(failure=ServerFailed("it ended"))
    hints = []
    async with BackgroundTasks(supervision(LoopClock())) as tasks:
        sessions = ServerSessions(processes, tasks, LoopClock(), CountingReducer())
        files = Files(Definitions((definition,)))
        servers = WorkspaceServers(files, trusted, sessions, LoopClock(), lambda _: None)
        execution = calling(replace(ECHO, digest="digest"))
        for _ in range(2):
            tools = ServerTools(servers, tasks, without_files)
            outcome = await tools.execute(execution, LOCATION)
            hints.append(json.loads(outcome.result_json)["hint"])
        sessions.close()
    assert hints == [
        "Do without it, or tell the person what it needs.",
        "Nothing ran: a call in a second starts it again. Try again then, or do without it.",
    ]
