"""Tools that work in a workspace, through toolrunner."""

import grpc

from chatd.clients.failures import JOURNAL_CHANGED, certain_problem
from chatd.clients.offers import KeptOffers, Offer, Place
from chatd.clients.users import user_of
from chatd.clients.workspace import TOOLS, Call, Shelf, failed, key_of, refused
from chatd.domain.chat import ChatId, Owner
from chatd.domain.tools import (
    Ended,
    Execution,
    Executor,
    Found,
    NeverSeen,
    Outcome,
    StillRunning,
    ToolSpec,
    Untraceable,
)
from parley.api.workspace.v1 import execution_pb2, execution_service_pb2
from parley.api.workspace.v1.execution_service_pb2_grpc import ExecutionServiceStub
from parley.clock import Clock
from parley.rpc import Channels, acting_for

OFFER_TIMEOUT_S = 5.0
ASK_TIMEOUT_S = 10.0


class WorkspaceTools:
    """Offers the tools of a workspace; a chat's calls go to the node that its id prefers."""

    def __init__(self, channels: Channels, clock: Clock, shelf: Shelf) -> None:
        self._channels = channels
        self._clock = clock
        self._shelf = shelf
        self._offers = KeptOffers(clock)

    async def offer(self, chat_id: ChatId, owner: Owner) -> tuple[ToolSpec, ...]:
        """Return the tools, with the journal that their calls will be written to."""
        place = self._place(chat_id, owner)
        return await self._offers.at(place, lambda: self._ask(chat_id, owner))

    async def _ask(self, chat_id: ChatId, owner: Owner) -> Offer:
        stub = ExecutionServiceStub(self._channels.for_key(chat_id))
        with acting_for(user_of(owner)):
            journal = await stub.GetJournal(
                execution_service_pb2.GetJournalRequest(),
                timeout=OFFER_TIMEOUT_S,
                wait_for_ready=True,
            )
        return Offer(tuple(tool.spec(journal.journal_generation) for tool in TOOLS.values()))

    async def execute(self, execution: Execution) -> Outcome:
        """Carry out a call, or attach to it if it has begun, and tell what became of it."""
        place = self._place(execution.chat_id, execution.owner)
        return await self._offers.after(place, self._execute(execution))

    async def _execute(self, execution: Execution) -> Outcome:
        name = execution.dispatch.call.tool_name
        tool = TOOLS.get(name)
        if tool is None:
            hint = "Call a tool that is offered now."
            return failed(f"There is no tool {name} any more.", "NO_SUCH_TOOL", hint)
        channel = self._channels.for_key(execution.chat_id)
        with acting_for(user_of(execution.owner)):
            return await tool.call(Call(execution, channel, self._clock, self._shelf))

    async def find(self, execution: Execution) -> Found:
        """Return what the journal knows of a call; executing it again attaches to its process."""
        request = execution_service_pb2.GetExecutionRequest(key=key_of(execution))
        try:
            with acting_for(user_of(execution.owner)):
                answer = await self._executions(execution).GetExecution(
                    request, timeout=ASK_TIMEOUT_S
                )
        except grpc.aio.AioRpcError as error:
            problem = certain_problem(error, Executor.TOOLRUNNER)
            return Untraceable() if problem.reason == JOURNAL_CHANGED else Ended(refused(problem))
        match answer.execution.state:
            case execution_pb2.EXECUTION_STATE_NEVER_SEEN:
                return NeverSeen()
            # A start that is over tells nothing of what it started; attaching does.
            case execution_pb2.EXECUTION_STATE_STARTED | execution_pb2.EXECUTION_STATE_FINISHED:
                return StillRunning()
            case _:
                return Untraceable()

    async def cancel(self, execution: Execution) -> None:
        """Have a call's processes ended; one never seen can no longer start."""
        request = execution_service_pb2.CancelExecutionRequest(
            request_id=f"cancel-{execution.dispatch.execution_id}", key=key_of(execution)
        )
        try:
            with acting_for(user_of(execution.owner)):
                await self._executions(execution).CancelExecution(request, timeout=ASK_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            certain_problem(error, Executor.TOOLRUNNER)

    def _place(self, chat_id: ChatId, owner: Owner) -> Place:
        return Place(str(self._channels.address_for(chat_id)), owner.id)

    def _executions(self, execution: Execution) -> ExecutionServiceStub:
        return ExecutionServiceStub(self._channels.for_key(execution.chat_id))
