"""Tools that run in a workspace, through toolrunner."""

import json
import logging
from collections.abc import Sequence
from typing import Protocol

import grpc

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import (
    Ended,
    Execution,
    Executor,
    ExecutorUnreachable,
    Found,
    NeverSeen,
    Outcome,
    StillRunning,
    ToolSpec,
    Untraceable,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ExecutionId, Owner
from chatd.tools.catalogue_cache import CatalogueKey, ToolCatalogue, ToolCatalogueCache
from chatd.tools.workspace import TOOLS, AttachmentStore, Call, failed, key_of, offered, refused
from chatd.tools.workspace.not_ready import not_ready
from chatd.users.clients.existence import user_of
from chatd.workspaces.clients.failures import JOURNAL_CHANGED, MOVED, certain_problem
from chatd.workspaces.domain.ports import WorkspaceLocation, WorkspaceLocator
from parley.api.workspace.v1 import execution_pb2, execution_service_pb2
from parley.api.workspace.v1.execution_service_pb2_grpc import ExecutionServiceStub
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.rpc import Address, Channels, acting_for

logger = logging.getLogger(__name__)

JOURNALS_MAX = 1024
# What the node of a call's journal answers to a cancellation.
OF_JOURNAL = frozenset({"", "STALE_OWNER", "EXECUTION_ID_REUSED"})
#: Reasons of results of calls whose node did not answer.
AWAY = ("UNREACHABLE", "OUT_OF_SIGHT")
#: A turn goes on without the tools of a node that does not answer, and starts within 5 s.
LIST_TIMEOUT_S = 3.0
ASK_TIMEOUT_S = 10.0


class EarlierWriters(Protocol):
    """Processes that chats started before a mode in which nothing is changed."""

    async def end(self, context: TurnContext) -> bool:
        """End those of a chat and of its agents, if its turn may only read.

        Returns False if some of them may still write.
        """
        ...


class ServerTools(Protocol):
    """The tools of the MCP servers inside workspaces."""

    def offers(self, tool_name: str) -> bool:
        """Return whether a tool is one of these."""
        ...

    async def offered(
        self, context: TurnContext, location: WorkspaceLocation, journal_generation: str
    ) -> tuple[ToolSpec, ...]:
        """Return the tools that a turn may use."""
        ...

    async def execute(self, execution: Execution, location: WorkspaceLocation) -> Outcome:
        """Call a tool, or attach to the running call, and return its outcome."""
        ...

    def find(self, execution: Execution) -> Found:
        """Return the state of a call."""
        ...

    def cancel(self, execution: Execution) -> None:
        """Cancel a call; one that has not arrived yet cannot start any more."""
        ...


class WorkspaceTools:
    """Offers the tools of a workspace; calls are sent to the node of the chat's workspace.

    Args:
        channels: Channels to nodes.
        clock: The clock.
        attachment_store: Stores files that the model attaches.
        locator: Finds the workspaces of chats.
        servers: The MCP servers inside workspaces; None for none.
        writers: Ends processes from before, when a turn may only read; None for no such turns.
    """

    def __init__(
        self,
        channels: Channels,
        clock: Clock,
        attachment_store: AttachmentStore,
        locator: WorkspaceLocator,
        servers: ServerTools | None = None,
        writers: EarlierWriters | None = None,
    ) -> None:
        self._channels = channels
        self._locator = locator
        self._clock = clock
        self._attachment_store = attachment_store
        self._servers = servers
        self._writers = writers
        self._catalogues = ToolCatalogueCache(clock)
        # The addresses of nodes by the generation of their journal.
        self._journals: BoundedCache[str, str] = BoundedCache(JOURNALS_MAX)

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools that the mode allows, with the journal generation of the node.

        Before a turn that may only read, processes that could still write are ended; if that fails
        there are no tools, as if the node did not answer.
        """
        try:
            location = await self._locator.locate_for_turn(context.chat_id)
        except ChatError as nowhere:
            logger.warning("a chat has no workspace tools now: %s", nowhere)
            return ()
        place = CatalogueKey(location.address, context.owner.id)
        specs = await self._catalogues.at(place, lambda: self._ask(location, context.owner))
        tools = offered(specs, context)
        is_placed = bool(location.epoch and tools)
        if self._writers is not None and is_placed and not await self._writers.end(context):
            return ()
        # A workspace that was never placed has no files, so it defines no servers.
        if self._servers is None or not location.epoch or not tools:
            return tools
        generation = tools[0].journal_generation
        return (*tools, *await self._servers.offered(context, location, generation))

    async def _ask(self, location: WorkspaceLocation, owner: Owner) -> ToolCatalogue:
        stub = ExecutionServiceStub(self._channel(location))
        with acting_for(user_of(owner)):
            journal = await stub.GetJournal(
                execution_service_pb2.GetJournalRequest(),
                timeout=LIST_TIMEOUT_S,
                wait_for_ready=True,
            )
        self._journals.put(journal.journal_generation, location.address)
        return ToolCatalogue(
            tuple(tool.spec(journal.journal_generation) for tool in TOOLS.values())
        )

    async def execute(self, execution: Execution) -> Outcome:
        """Execute a call, or attach to it if it has started, and return its outcome.

        A node that refuses because its workspace is elsewhere, or was stopped, has not started the
        call, so the call is sent to the workspace's current location.
        """
        location = await self._ready(execution)
        if isinstance(location, Outcome):
            return location
        outcome = await self._execute_at(execution, location)
        if not _has_reason(outcome, MOVED):
            return outcome
        newest = await self._ready(execution)
        if isinstance(newest, Outcome):
            return newest
        return outcome if newest == location else await self._execute_at(execution, newest)

    async def _ready(self, execution: Execution) -> WorkspaceLocation | Outcome:
        """Return the location for a call, or the call's outcome if there is none."""
        try:
            return await self._locator.ensure_ready(execution.chat_id, execution.owner)
        except ChatError as unready:
            return not_ready(unready)

    async def _execute_at(self, execution: Execution, location: WorkspaceLocation) -> Outcome:
        place = CatalogueKey(location.address, execution.owner.id)
        is_there = False
        try:
            outcome = await self._catalogues.after(place, self._execute(execution, location))
            is_there = not _has_reason(outcome, (*MOVED, *AWAY))
            return outcome
        finally:
            if not is_there:
                self._locator.forget(execution.chat_id)

    async def _execute(self, execution: Execution, location: WorkspaceLocation) -> Outcome:
        name = execution.dispatch.call.tool_name
        if self._servers is not None and self._servers.offers(name):
            return await self._servers.execute(execution, location)
        tool = TOOLS.get(name)
        if tool is None:
            hint = "Call a tool that is offered now."
            return failed(f"There is no tool {name} any more.", "NO_SUCH_TOOL", hint)
        with acting_for(user_of(execution.owner)):
            return await tool.call(
                Call(
                    execution,
                    self._channel(location),
                    self._clock,
                    self._attachment_store,
                    location,
                )
            )

    async def find(self, execution: Execution) -> Found:
        """Return the state of a call in the journal; executing it again attaches to its process."""
        tool_name = execution.dispatch.call.tool_name
        if self._servers is not None and self._servers.offers(tool_name):
            return self._servers.find(execution)
        request = execution_service_pb2.GetExecutionRequest(key=key_of(execution))
        stub = await self._executions(execution)
        if stub is None:
            return Untraceable()
        try:
            with acting_for(user_of(execution.owner)):
                answer = await stub.GetExecution(request, timeout=ASK_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            problem = certain_problem(error, Executor.TOOLRUNNER)
            return Untraceable() if problem.reason == JOURNAL_CHANGED else Ended(refused(problem))
        match answer.execution.state:
            case execution_pb2.EXECUTION_STATE_NEVER_SEEN:
                return NeverSeen()
            # A finished start says nothing about the started process; attaching does.
            case execution_pb2.EXECUTION_STATE_STARTED | execution_pb2.EXECUTION_STATE_FINISHED:
                return StillRunning()
            case _:
                return Untraceable()

    async def cancel(self, execution: Execution) -> None:
        """Terminate a call's processes; a call that has not arrived yet cannot start any more."""
        tool_name = execution.dispatch.call.tool_name
        if self._servers is not None and self._servers.offers(tool_name):
            self._servers.cancel(execution)
            return
        request = execution_service_pb2.CancelExecutionRequest(
            request_id=f"cancel-{execution.dispatch.execution_id}", key=key_of(execution)
        )
        generation = execution.dispatch.journal_generation
        # By the journal, not by the chat, which may be deleted or use another workspace by now.
        known = self._journals.get(generation)
        if known is not None:
            try:
                if await self._cancel_at(known, request, execution.owner) != JOURNAL_CHANGED:
                    return
            finally:
                self._journals.pop(generation)  # The node may have another address or journal.
        unreachable: ExecutorUnreachable | None = None
        for address in await self._locator.node_addresses():
            try:
                if await self._cancel_at(address, request, execution.owner) in OF_JOURNAL:
                    self._journals.put(generation, address)
                    return
            except ExecutorUnreachable as error:
                unreachable = error
        if unreachable is not None:
            raise unreachable

    async def _cancel_at(
        self, address: str, request: execution_service_pb2.CancelExecutionRequest, owner: Owner
    ) -> str:
        """Cancel a call at a node; return the reason if the node refuses, empty if it does it."""
        stub = ExecutionServiceStub(self._channels.also(Address.parse(address)))
        try:
            with acting_for(user_of(owner)):
                await stub.CancelExecution(request, timeout=ASK_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            return certain_problem(error, Executor.TOOLRUNNER).reason
        return ""

    async def acknowledge(self, generation: str, execution_ids: Sequence[ExecutionId]) -> None:
        """Acknowledge results to the node of a journal, if this process knows it.

        Raises:
            ExecutorUnreachable: the node does not respond.
        """
        address = self._journals.get(generation)
        if address is None:
            return
        request = execution_service_pb2.AckExecutionsRequest(
            request_id=f"ack-{execution_ids[0]}",
            execution_ids=execution_ids,
            journal_generation=generation,
        )
        stub = ExecutionServiceStub(self._channels.also(Address.parse(address)))
        try:
            await stub.AckExecutions(request, timeout=ASK_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            problem = certain_problem(error, Executor.TOOLRUNNER)
            logger.info("executions were not acknowledged: %s", problem.message)

    def _channel(self, location: WorkspaceLocation) -> grpc.aio.Channel:
        return self._channels.also(Address.parse(location.address))

    async def _executions(self, execution: Execution) -> ExecutionServiceStub | None:
        """Return the execution stub of the chat's node, None if there is no such node."""
        try:
            location = await self._locator.locate(execution.chat_id)
        except ChatError:
            return None
        return ExecutionServiceStub(self._channel(location))


def _has_reason(outcome: Outcome, reasons: Sequence[str]) -> bool:
    """Return whether a call failed for one of these reasons."""
    if outcome.outcome is ToolOutcome.DONE or not any(
        each in outcome.result_json for each in reasons
    ):
        return False
    # The output of a command may contain the same text.
    return json.loads(outcome.result_json).get("reason") in reasons
