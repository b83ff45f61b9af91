"""An McpRuntimeService whose calls ask: the same journal as in memory, behind gRPC."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import (
    Dispatch,
    Ended,
    Execution,
    Executor,
    InputAction,
    InputAnswer,
    InputRequired,
    NeverSeen,
    Outcome,
    PendingKind,
    StillRunning,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.mcp_results import ResultFiles
from chatd.tools.mcpgateway import McpTools
from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import tool_pb2
from parley.api.mcp.v1.runtime_service_pb2_grpc import (
    McpRuntimeServiceServicer,
    add_McpRuntimeServiceServicer_to_server,
)
from parley.clock import FakeClock
from parley.rpc import Address, Channels
from support.chatd.tools.kept_files import KeptFiles
from support.chatd.turns.journaling_tools import JournalingTools

OWNER = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
KINDS = {
    PendingKind.LOGIN: tool_pb2.INPUT_KIND_LOGIN,
    PendingKind.ELICITATION: tool_pb2.INPUT_KIND_ELICITATION,
}
ACTIONS = {
    tool_pb2.INPUT_ACTION_ACCEPT: InputAction.ACCEPT,
    tool_pb2.INPUT_ACTION_DECLINE: InputAction.DECLINE,
    tool_pb2.INPUT_ACTION_CANCEL: InputAction.CANCEL,
}
OUTCOMES = {
    ToolOutcome.DONE: tool_pb2.CALL_OUTCOME_SUCCEEDED,
    ToolOutcome.FAILED: tool_pb2.CALL_OUTCOME_FAILED,
    ToolOutcome.CANCELLED: tool_pb2.CALL_OUTCOME_CANCELLED,
    ToolOutcome.UNKNOWN: tool_pb2.CALL_OUTCOME_UNKNOWN,
}


class AskingRuntime(McpRuntimeServiceServicer):
    """Serves calls from a journal in memory."""

    def __init__(self, journal: JournalingTools) -> None:
        self._journal = journal

    async def CallTool(  # noqa: N802 (the name is the proto's)
        self, request: api.CallToolRequest, context: Any
    ) -> AsyncIterator[api.CallToolResponse]:
        """Start a call, attach to it, or answer it."""
        answer = None
        if request.HasField("answer"):
            given = request.answer
            action = ACTIONS[given.action]
            answer = InputAnswer(given.request_id, action, given.content_json.decode())
        yield api.CallToolResponse(started=api.CallStarted())
        told = await self._journal.execute(_execution(request.key, request.original_name, answer))
        if isinstance(told, InputRequired):
            yield api.CallToolResponse(input_required=_question(told))
        else:
            yield api.CallToolResponse(result=_result(told))

    async def GetCall(  # noqa: N802 (the name is the proto's)
        self, request: api.GetCallRequest, context: Any
    ) -> api.GetCallResponse:
        """Look into the journal."""
        match await self._journal.find(_execution(request.key)):
            case NeverSeen():
                return api.GetCallResponse(state=tool_pb2.CALL_STATE_NEVER_SEEN)
            case StillRunning():
                return api.GetCallResponse(state=tool_pb2.CALL_STATE_RUNNING)
            case InputRequired() as asked:
                state = tool_pb2.CALL_STATE_INPUT_REQUIRED
                return api.GetCallResponse(state=state, input_required=_question(asked))
            case Ended(outcome):
                state = tool_pb2.CALL_STATE_FINISHED
                return api.GetCallResponse(state=state, result=_result(outcome))
            case _:
                return api.GetCallResponse(state=tool_pb2.CALL_STATE_ACKNOWLEDGED)

    async def CancelCall(  # noqa: N802 (the name is the proto's)
        self, request: api.CancelCallRequest, context: Any
    ) -> api.CancelCallResponse:
        """Stop a call."""
        await self._journal.cancel(_execution(request.key))
        return api.CancelCallResponse(state=tool_pb2.CALL_STATE_FINISHED)


def _execution(key: api.CallKey, name: str = "", answer: InputAnswer | None = None) -> Execution:
    call = ToolCall("call", name, "{}")
    spec = ToolSpec(name, "", "{}", Executor.MCPGATEWAY, key.journal_generation)
    execution_id = ExecutionId(key.execution_id)
    dispatch = Dispatch(execution_id, call, Executor.MCPGATEWAY, key.journal_generation)
    context = TurnContext(ChatId(key.chat_id), OWNER)
    return Execution(context, key.owner_epoch, dispatch, spec, answer=answer)


def _question(asked: InputRequired) -> tool_pb2.InputRequired:
    return tool_pb2.InputRequired(
        request_id=asked.request_id,
        kind=KINDS[asked.kind],
        message=asked.message,
        schema_json=asked.schema_json.encode(),
        url=asked.url,
        expires_after_ms=round((asked.expires_s or 0) * 1000),
    )


def _result(outcome: Outcome) -> tool_pb2.CallResult:
    return tool_pb2.CallResult(outcome=OUTCOMES[outcome.outcome])


@asynccontextmanager
async def asking_mcp_tools(journal: JournalingTools, directory: Path) -> AsyncIterator[McpTools]:
    """Serve a journal, and yield the tools of a chatd that calls it."""
    address = f"unix:{directory}/mcp.sock"
    server = grpc.aio.server()
    add_McpRuntimeServiceServicer_to_server(AskingRuntime(journal), server)
    server.add_insecure_port(address)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            channels = Channels((Address.parse(address),), lambda _: channel)
            yield McpTools(channels, FakeClock(), ResultFiles(KeptFiles()))
    finally:
        await server.stop(None)
