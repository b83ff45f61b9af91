"""Tools that work in a workspace, through toolrunner."""

import json

import grpc
import msgspec

from chatd.clients.failures import JOURNAL_CHANGED, certain_problem, refused
from chatd.clients.offers import KeptOffers, Offer, Place
from chatd.clients.users import user_of
from chatd.domain.chat import ChatId, Owner
from chatd.domain.parts import ToolOutcome
from chatd.domain.tools import (
    UNKNOWN_OUTCOME,
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
from parley.api.workspace.v1 import (
    execution_pb2,
    execution_service_pb2,
    process_pb2,
    process_service_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1.execution_service_pb2_grpc import ExecutionServiceStub
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.clock import Clock
from parley.rpc import Channels, acting_for

OFFER_TIMEOUT_S = 5.0
ASK_TIMEOUT_S = 10.0
START_TIMEOUT_S = 30.0
WAIT_S = 10.0
WAIT_HEADROOM_S = 30.0

EXECUTE_DESCRIPTION = (
    "Run a shell command in the workspace and return its output. A command that has not ended "
    "after ten seconds goes on in the background."
)
EXECUTE_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "What to run, as text for `sh -c`."}
        },
        "required": ["command"],
        "additionalProperties": False,
    }
)


class ExecuteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `execute`."""

    command: str


class WorkspaceTools:
    """Offers `execute`; a chat's calls go to the node that its id prefers."""

    def __init__(self, channels: Channels, clock: Clock) -> None:
        self._channels = channels
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
        execute = ToolSpec(
            name="execute",
            description=EXECUTE_DESCRIPTION,
            input_schema_json=EXECUTE_SCHEMA,
            executor=Executor.TOOLRUNNER,
            journal_generation=journal.journal_generation,
        )
        return Offer((execute,))

    async def execute(self, execution: Execution) -> Outcome:
        """Start the command once, wait for it, and tell what it printed."""
        place = self._place(execution.chat_id, execution.owner)
        return await self._offers.after(place, self._execute(execution))

    async def _execute(self, execution: Execution) -> Outcome:
        try:
            arguments = msgspec.json.decode(
                execution.dispatch.call.args_json, type=ExecuteArguments
            )
        except msgspec.DecodeError as error:
            told = {"error": f"the arguments are not what execute takes: {error}"}
            return Outcome(ToolOutcome.FAILED, json.dumps(told))
        stub = ProcessServiceStub(self._channels.for_key(execution.chat_id))
        try:
            with acting_for(user_of(execution.owner)):
                return await self._run(stub, execution, arguments)
        except grpc.aio.AioRpcError as error:
            problem = certain_problem(error, Executor.TOOLRUNNER)
            return UNKNOWN_OUTCOME if problem.reason == JOURNAL_CHANGED else refused(problem)

    async def find(self, execution: Execution) -> Found:
        """Return what the journal knows of a call; executing it again attaches to its process."""
        request = execution_service_pb2.GetExecutionRequest(key=_key(execution))
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
            request_id=f"cancel-{execution.dispatch.execution_id}", key=_key(execution)
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

    async def _run(
        self, stub: ProcessServiceStub, execution: Execution, arguments: ExecuteArguments
    ) -> Outcome:
        dispatch = execution.dispatch
        context = workspace_pb2.WorkspaceContext(
            workspace_id=execution.chat_id, chat_id=execution.chat_id
        )
        started = await stub.StartProcess(
            process_service_pb2.StartProcessRequest(
                context=context,
                request_id=dispatch.execution_id,
                key=_key(execution),
                spec=process_pb2.ProcessSpec(command=arguments.command),
            ),
            timeout=START_TIMEOUT_S,
        )
        waited = await stub.WaitOutput(
            process_service_pb2.WaitOutputRequest(
                context=context,
                process_id=started.process.process_id,
                condition=process_pb2.WaitCondition(
                    until=process_pb2.WAIT_UNTIL_EXIT, max_wait_ms=int(WAIT_S * 1000)
                ),
            ),
            timeout=WAIT_S + WAIT_HEADROOM_S,
        )
        return _outcome(waited)


def _key(execution: Execution) -> execution_pb2.ExecutionKey:
    return execution_pb2.ExecutionKey(
        execution_id=execution.dispatch.execution_id,
        chat_id=execution.chat_id,
        owner_epoch=execution.owner_epoch,
        journal_generation=execution.dispatch.journal_generation,
    )


def _outcome(waited: process_service_pb2.WaitOutputResponse) -> Outcome:
    """Return what the model is told of a command."""
    process = waited.process
    told: dict[str, object] = {"process_id": process.process_id, "output": waited.output.text}
    match process.state:
        case process_pb2.PROCESS_STATE_EXITED:
            told["exit_code"] = process.exit.shell_exit_code
            is_success = process.exit.shell_exit_code == 0
            return Outcome(ToolOutcome.DONE if is_success else ToolOutcome.FAILED, json.dumps(told))
        case process_pb2.PROCESS_STATE_START_FAILED:
            return Outcome(ToolOutcome.FAILED, json.dumps({**told, "error": process.start_error}))
        case process_pb2.PROCESS_STATE_LOST:
            return UNKNOWN_OUTCOME
        case _:
            return Outcome(ToolOutcome.DONE, json.dumps({**told, "running": True}))
