"""Tools of the MCP servers inside a workspace.

Calls are in no journal: the session with the server is in the memory of this process, and so is
what becomes of its calls. After the end of the process their outcome is unknown.
"""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import CallProgress, ToolOutcome
from chatd.content.domain.tool_servers import ServerReport, ToolServers
from chatd.content.domain.tools import (
    UNKNOWN_OUTCOME,
    Ended,
    Execution,
    Found,
    Outcome,
    StillRunning,
    ToolSpec,
    Untraceable,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ExecutionId
from chatd.workspace_servers.clients.server_results import call_result
from chatd.workspace_servers.domain.messages import Progress
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.state import ServerFailed
from chatd.workspace_servers.domain.tools import is_server_tool, server_of
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspace_servers.engine.session import CallLost, CallTimedOut
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.mcp.v1 import tool_pb2
from parley.cache import BoundedCache
from parley.rpc import detached
from parley.tasks import Starter
from parley.tool_schemas import original_arguments

#: Results and cancellations that are remembered, for calls that are made or asked for again.
ENDED_MAX: Final = 1024
CANCELLED: Final = Outcome(
    ToolOutcome.CANCELLED, json.dumps({"ok": False, "error": "The call was cancelled."})
)


OutcomeOfResult = Callable[[Execution, tool_pb2.CallResult], Awaitable[Outcome]]


class ServerTools:
    """Offers and calls the tools of workspace servers.

    Args:
        servers: The servers of workspaces.
        tasks: Owns the calls: a caller that leaves does not end its call.
        outcome_of: Returns the outcome of a call, with files for what is too large for a message.
    """

    def __init__(
        self, servers: WorkspaceServers, tasks: Starter, outcome_of: OutcomeOfResult
    ) -> None:
        self._servers = servers
        self._tasks = tasks
        self._outcome_of = outcome_of
        self._running: dict[ExecutionId, asyncio.Task[None]] = {}
        self._ended: BoundedCache[ExecutionId, Outcome] = BoundedCache(ENDED_MAX)

    @staticmethod
    def offers(tool_name: str) -> bool:
        """Return whether a tool belongs to a workspace server."""
        return is_server_tool(tool_name)

    async def offered(
        self, context: TurnContext, location: WorkspaceLocation, journal_generation: str
    ) -> tuple[ToolSpec, ...]:
        """Return the tools of the trusted servers of a turn's workspace."""
        place = ServerPlace(
            context.chat_id, context.owner, location, _is_reading(context.mode), context.turn_id
        )
        return await self._servers.offered(place, journal_generation)

    async def execute(self, execution: Execution, location: WorkspaceLocation) -> Outcome:
        """Call a tool, or attach to the running call, and return its outcome."""
        execution_id = execution.dispatch.execution_id
        known = self._ended.get(execution_id)
        if known is not None:
            return known
        task = self._running.get(execution_id)
        if task is None:
            task = self._tasks.create_task(
                self._run(execution, location), name="workspace_servers.call", context=detached()
            )
            self._running[execution_id] = task
            task.add_done_callback(lambda done: self._on_done(execution_id, done))
        await asyncio.wait((task,))
        return self._ended.get(execution_id) or UNKNOWN_OUTCOME

    def find(self, execution: Execution) -> Found:
        """Return the state of a call, if this process made it."""
        execution_id = execution.dispatch.execution_id
        if execution_id in self._running:
            return StillRunning()
        known = self._ended.get(execution_id)
        return Untraceable() if known is None else Ended(known)

    def cancel(self, execution: Execution) -> None:
        """Cancel a call; one that has not arrived yet cannot start any more."""
        execution_id = execution.dispatch.execution_id
        task = self._running.get(execution_id)
        if task is not None:
            task.cancel()
        elif self._ended.get(execution_id) is None:
            self._ended.put(execution_id, CANCELLED)

    def close(self) -> None:
        """Cancel all calls, because the process stops."""
        for task in self._running.values():
            task.cancel()

    def _on_done(self, execution_id: ExecutionId, task: asyncio.Task[None]) -> None:
        """Forget a task, also one that was cancelled before it began."""
        self._running.pop(execution_id, None)
        if task.cancelled() and self._ended.get(execution_id) is None:
            self._ended.put(execution_id, CANCELLED)

    async def _run(self, execution: Execution, location: WorkspaceLocation) -> None:
        outcome = UNKNOWN_OUTCOME
        try:
            outcome = await self._outcome(execution, location)
        except asyncio.CancelledError:
            outcome = CANCELLED
            raise
        finally:
            self._ended.put(execution.dispatch.execution_id, outcome)

    async def _outcome(self, execution: Execution, location: WorkspaceLocation) -> Outcome:
        dispatch, spec = execution.dispatch, execution.spec
        name = server_of(dispatch.call.tool_name)
        place = ServerPlace(
            execution.chat_id,
            execution.owner,
            location,
            # By the mode that is stored with the call: a new owner of the chat keeps it.
            _is_reading(dispatch.mode),
            execution.context.turn_id,
        )
        try:
            session = await self._servers.session(place, name, spec.digest)
            arguments = _arguments(dispatch.call.args_json, spec.input_schema_json)
            result = await session.call(spec.original_name, arguments, _reporter(execution))
        except ServerFailed as failure:
            hint = _hint(failure)
            return _failed(f"The MCP server {name} failed: {failure}.", "SERVER_FAILED", hint)
        except CallTimedOut:
            hint = "It may have had an effect: check before you repeat it."
            return _failed(f"The MCP server {name} did not answer in time.", "TIMED_OUT", hint)
        except CallLost:
            return UNKNOWN_OUTCOME
        except ChatError as unreadable:
            return _failed(str(unreadable), "WORKSPACE_NOT_READY", "Try again later.")
        try:
            return await self._outcome_of(execution, call_result(result))
        except FenceLost:
            return UNKNOWN_OUTCOME  # Another process owns the chat, and refuses the result.


class ServersOfTurns:
    """The servers of administrators and those of workspaces, as turns report them."""

    def __init__(self, of_administrators: ToolServers, of_workspaces: WorkspaceServers) -> None:
        self._of_administrators = of_administrators
        self._of_workspaces = of_workspaces

    async def reports(self, context: TurnContext) -> tuple[ServerReport, ...]:
        """Return what is known of the servers of a turn.

        Raises:
            ModelError: It cannot be found out which servers the turn has to use.
        """
        told = await self._of_administrators.reports(context)
        return (*told, *self._of_workspaces.reports(context.chat_id))


def _failed(error: str, reason: str, hint: str) -> Outcome:
    document = {"ok": False, "error": error, "reason": reason, "hint": hint}
    return Outcome(ToolOutcome.FAILED, json.dumps(document, ensure_ascii=False))


def _hint(failure: ServerFailed) -> str:
    if not failure.retry_s:
        return "Do without it, or tell the person what it needs."
    pause_s = math.ceil(failure.retry_s)
    when = "a second" if pause_s == 1 else f"{pause_s} seconds"
    return f"Nothing ran: a call in {when} starts it again. Try again then, or do without it."


def _is_reading(mode: ChatMode) -> bool:
    return mode is not ChatMode.ORDINARY


def _arguments(args_json: str, input_schema_json: str) -> dict[str, Any]:
    """Return the arguments of a call under the names of its tool."""
    named = original_arguments((args_json or "{}").encode(), input_schema_json.encode())
    given = json.loads(named)
    return given if isinstance(given, dict) else {}


def _reporter(execution: Execution) -> Any:
    def report(told: Progress) -> None:
        progress = CallProgress(told.progress, told.total, told.message)
        execution.context.progress.report(execution.dispatch.call.tool_call_id, progress)

    return report
