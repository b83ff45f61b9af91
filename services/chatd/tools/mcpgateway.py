"""Tools of MCP servers, through mcpgateway."""

import logging
from collections.abc import Mapping, Sequence

import grpc

from chatd.chats.domain.references import NO_SUCH_SERVER, SERVER_DISABLED
from chatd.content.domain.messages import ChatMode, ErrorKind
from chatd.content.domain.parts import CallProgress
from chatd.content.domain.tool_servers import ServerReport
from chatd.content.domain.tools import (
    UNKNOWN_OUTCOME,
    Ended,
    Execution,
    Executor,
    ExecutorUnreachable,
    Found,
    InputAction,
    InputAnswer,
    InputRequired,
    NeverSeen,
    Outcome,
    PendingKind,
    StillRunning,
    ToolSpec,
    Untraceable,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.language_model import ModelError
from chatd.primitives.domain.errors import CheckUnavailable
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner
from chatd.tools.catalogue_cache import (
    CatalogueKey,
    ServerChoiceCache,
    ToolCatalogue,
    ToolCatalogueCache,
)
from chatd.tools.mcp_results import Bodies, ResultFiles, outcome_of
from chatd.users.clients.existence import user_of
from chatd.workspaces.clients.failures import JOURNAL_CHANGED, certain_problem, refused
from parley.api.mcp.v1 import error_reason_pb2, server_pb2, tool_pb2
from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1.runtime_service_pb2_grpc import McpRuntimeServiceStub
from parley.clock import Clock
from parley.rpc import Channels, NoAddress, Problem, acting_for, problem_of

logger = logging.getLogger(__name__)

CALL_TIMEOUT_S = 600.0
LIST_TIMEOUT_S = 10.0
ASK_TIMEOUT_S = 10.0
CALL_ACKNOWLEDGED = "CALL_ACKNOWLEDGED"
CALL_NOT_FOUND = "CALL_NOT_FOUND"
CATALOGUE_CHANGED = "CATALOGUE_CHANGED"
PAGES_MAX = 50
# A user's request waits for this check.
CHECK_TIMEOUT_S = 2.0

KINDS: Mapping[int, PendingKind] = {
    tool_pb2.INPUT_KIND_LOGIN: PendingKind.LOGIN,
    tool_pb2.INPUT_KIND_ELICITATION: PendingKind.ELICITATION,
}
ACTIONS = {
    InputAction.ACCEPT: tool_pb2.INPUT_ACTION_ACCEPT,
    InputAction.DECLINE: tool_pb2.INPUT_ACTION_DECLINE,
    InputAction.CANCEL: tool_pb2.INPUT_ACTION_CANCEL,
}


class McpTools:
    """Lists and calls the tools of MCP servers; the chat id selects the replica.

    Args:
        channels: The replicas of mcpgateway.
        clock: The clock of the caches.
        files: Stores results that are too large for a message.
    """

    def __init__(self, channels: Channels, clock: Clock, files: ResultFiles) -> None:
        self._channels = channels
        self._files = files
        self._catalogues = ToolCatalogueCache(clock)
        self._choices = ServerChoiceCache(clock)

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools of the servers that the chat has chosen, and of those for all chats.

        Raises:
            ModelError: It cannot be found out which servers these are.
        """
        return (await self._catalogue(context)).specs

    async def reports(self, context: TurnContext) -> tuple[ServerReport, ...]:
        """Return what is known of the servers of a turn.

        Raises:
            ModelError: It cannot be found out which servers these are.
        """
        return (await self._catalogue(context)).reports

    async def _catalogue(self, context: TurnContext) -> ToolCatalogue:
        if not self._channels.addresses:
            return ToolCatalogue(())
        return await self._catalogues.catalogue(self._place(context), lambda: self._ask(context))

    def forget_catalogues(self) -> None:
        """Drop cached catalogues and choices, because servers changed or notices may be lost."""
        self._catalogues.forget()
        self._choices.forget()

    async def refused(
        self, chat_id: ChatId, owner: Owner, server_ids: Sequence[str], stored: Sequence[str]
    ) -> Mapping[str, str]:
        """Return the servers that a chat may not choose, each with the reason.

        Raises:
            CheckUnavailable: no mcpgateway answers.
        """
        if self._choices.are_good(owner.id, set(server_ids) - set(stored)):
            return {}
        request = api.ResolveSelectionRequest(
            context=api.ChatContext(chat_id=chat_id, root_chat_id=chat_id),
            requested=api.ServerSelection(server_ids=server_ids),
            stored_server_ids=stored,
        )
        forgotten = self._choices.forgotten
        try:
            stub = McpRuntimeServiceStub(self._channels.for_key(chat_id))
            with acting_for(user_of(owner)):
                selection = await stub.ResolveSelection(request, timeout=CHECK_TIMEOUT_S)
        except (grpc.aio.AioRpcError, NoAddress) as error:
            raise CheckUnavailable("MCP server") from error
        refused = {each.server_id: _reason(each) for each in selection.invalid_servers}
        if forgotten == self._choices.forgotten:
            self._choices.keep(owner.id, set(server_ids) - set(stored) - set(refused))
        return refused

    async def _ask(self, context: TurnContext) -> ToolCatalogue:
        """Request the tools of a turn.

        Without an answer the turn fails: it may have to use servers that are forced on.
        """
        try:
            return await self._ask_gateway(context)
        except grpc.aio.AioRpcError as error:
            logger.warning("MCP servers cannot be resolved: %s", error.code().name, exc_info=error)
            message = (
                "It cannot be found out now which MCP servers this chat has to use; try again."
            )
            raise ModelError(ErrorKind.GENERIC, message, is_retryable=True) from error

    async def _ask_gateway(self, context: TurnContext) -> ToolCatalogue:
        stub = McpRuntimeServiceStub(self._channels.for_key(context.chat_id))
        chat = _chat_context(context, context.mode)
        with acting_for(user_of(context.owner)):
            selection = await stub.ResolveSelection(
                _selection(context, chat),
                timeout=LIST_TIMEOUT_S,
                wait_for_ready=True,
            )
            if not selection.effective_server_ids:
                return ToolCatalogue(())
            request = api.ListToolsRequest(
                context=chat, server_ids=selection.effective_server_ids, allow_stale=True
            )
            listing = await _all_pages(stub, request)
        return ToolCatalogue(
            tuple(_spec(tool, listing.journal_generation) for tool in listing.tools),
            is_complete=all(
                each.state == server_pb2.SERVER_STATE_READY for each in listing.servers
            ),
            reports=tuple(report_of(each) for each in listing.servers),
        )

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Call a tool, or attach to the running call, and return its result or what it asks."""
        place = self._place(execution.context)
        return await self._catalogues.after(place, self._execute(execution))

    async def _execute(self, execution: Execution) -> Outcome | InputRequired:
        stub, bodies = self._stub(execution), Bodies()
        try:
            with acting_for(user_of(execution.owner)):
                async for response in stub.CallTool(_request(execution), timeout=CALL_TIMEOUT_S):
                    if response.HasField("chunk"):
                        bodies.add(response.chunk)
                    if response.HasField("result"):
                        return await self._files.outcome(execution, response.result, bodies)
                    if response.HasField("input_required"):
                        return question_of(response.input_required)
                    if response.HasField("progress"):
                        self._report(execution, response.progress)
        except grpc.aio.AioRpcError as error:
            return _refusal(certain_problem(error, Executor.MCPGATEWAY))
        raise ExecutorUnreachable(Executor.MCPGATEWAY)

    def _report(self, execution: Execution, told: api.CallProgress) -> None:
        total = told.total if told.HasField("total") else None
        progress = CallProgress(told.progress, total, told.message)
        execution.context.progress.report(execution.dispatch.call.tool_call_id, progress)

    async def find(self, execution: Execution) -> Found:
        """Return the state of a call in the journal."""
        request = api.GetCallRequest(key=_key(execution))
        try:
            with acting_for(user_of(execution.owner)):
                found = await self._stub(execution).GetCall(request, timeout=ASK_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            problem = certain_problem(error, Executor.MCPGATEWAY)
            return Untraceable() if problem.reason == JOURNAL_CHANGED else Ended(refused(problem))
        match found.state:
            case tool_pb2.CALL_STATE_NEVER_SEEN:
                return NeverSeen()
            case tool_pb2.CALL_STATE_RUNNING:
                return StillRunning()
            case tool_pb2.CALL_STATE_INPUT_REQUIRED:
                return question_of(found.input_required)
            case tool_pb2.CALL_STATE_FINISHED if _is_streamed(found.result):
                # Attaching to the call again brings the bodies, which this answer lacks.
                return StillRunning()
            case tool_pb2.CALL_STATE_FINISHED:
                return Ended(outcome_of(found.result))
            case _:
                return Untraceable()

    async def cancel(self, execution: Execution) -> None:
        """Cancel a call; one that has not arrived yet cannot start any more."""
        request = api.CancelCallRequest(
            request_id=f"cancel-{execution.dispatch.execution_id}", key=_key(execution)
        )
        try:
            with acting_for(user_of(execution.owner)):
                await self._stub(execution).CancelCall(request, timeout=ASK_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            certain_problem(error, Executor.MCPGATEWAY)

    async def acknowledge(self, generation: str, execution_ids: Sequence[ExecutionId]) -> None:
        """Acknowledge results; all replicas have the same journal.

        Raises:
            ExecutorUnreachable: no mcpgateway responds.
        """
        request = api.AckCallsRequest(
            request_id=f"ack-{execution_ids[0]}",
            execution_ids=execution_ids,
            journal_generation=generation,
        )
        try:
            stub = McpRuntimeServiceStub(self._channels.for_key(execution_ids[0]))
            await stub.AckCalls(request, timeout=ASK_TIMEOUT_S)
        except NoAddress as error:
            raise ExecutorUnreachable(Executor.MCPGATEWAY) from error
        except grpc.aio.AioRpcError as error:
            problem = certain_problem(error, Executor.MCPGATEWAY)
            logger.info("calls were not acknowledged: %s", problem.message)

    def _place(self, context: TurnContext) -> CatalogueKey:
        address = str(self._channels.address_for(context.chat_id))
        return CatalogueKey(address, context.owner.id, context.mode, context.mcp_server_ids)

    def _stub(self, execution: Execution) -> McpRuntimeServiceStub:
        return McpRuntimeServiceStub(self._channels.for_key(execution.chat_id))


async def _all_pages(
    stub: McpRuntimeServiceStub, request: api.ListToolsRequest
) -> api.ListToolsResponse:
    """Return all pages of a listing as one; it begins again if the tools change meanwhile."""
    whole = await stub.ListTools(request, timeout=LIST_TIMEOUT_S)
    token = whole.next_page_token
    for _ in range(PAGES_MAX):
        if not token:
            break
        request.page_token = token
        try:
            page = await stub.ListTools(request, timeout=LIST_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            if problem_of(error).reason != CATALOGUE_CHANGED:
                raise
            request.page_token = ""
            page = whole = await stub.ListTools(request, timeout=LIST_TIMEOUT_S)
        else:
            whole.tools.extend(page.tools)
        token = page.next_page_token
    return whole


def _is_streamed(result: tool_pb2.CallResult) -> bool:
    return any(part.streamed_bytes for part in result.parts)


def report_of(server: api.ServerOutcome) -> ServerReport:
    """Convert what is known of a server in a turn."""
    is_ready = server.state == server_pb2.SERVER_STATE_READY
    problem = "" if is_ready else (server.message or "it does not answer").rstrip(".") + "."
    if server.is_stale and not is_ready:
        problem += " Its tools stay listed as it last listed them, and calls of them may fail."
    searched = {server_pb2.TOOL_SEARCH_ALWAYS: True, server_pb2.TOOL_SEARCH_NEVER: False}
    return ServerReport(
        server.server_id,
        server.slug,
        server.display_name or server.slug or server.server_id,
        server.instructions,
        problem,
        server.is_required,
        searched.get(server.tool_search),
        server.quarantined_tool_count,
        server.dropped_tool_count,
    )


def _chat_context(context: TurnContext, mode: ChatMode) -> api.ChatContext:
    return api.ChatContext(
        chat_id=context.chat_id,
        root_chat_id=context.root_chat_id,
        workspace_id=context.workspace_id,
        is_plan_mode=mode is not ChatMode.ORDINARY,
    )


def _selection(context: TurnContext, chat: api.ChatContext) -> api.ResolveSelectionRequest:
    chosen = context.mcp_server_ids
    return api.ResolveSelectionRequest(
        context=chat, stored_server_ids=chosen or (), uses_defaults=chosen is None
    )


def _reason(server: api.InvalidServer) -> str:
    is_disabled = server.reason == error_reason_pb2.ERROR_REASON_SERVER_DISABLED
    return SERVER_DISABLED if is_disabled else NO_SUCH_SERVER


def _refusal(problem: Problem) -> Outcome:
    """Return a refused call's outcome; a new journal proves nothing about the first attempt.

    A call that was acknowledged before was executed for a database that has been replaced. A call
    that asked, and is not there when it is answered, is lost.
    """
    is_unknown = problem.reason in (JOURNAL_CHANGED, CALL_ACKNOWLEDGED, CALL_NOT_FOUND)
    return UNKNOWN_OUTCOME if is_unknown else refused(problem)


def _spec(tool: tool_pb2.McpTool, journal_generation: str) -> ToolSpec:
    return ToolSpec(
        name=tool.model_name,
        description=tool.description,
        input_schema_json=tool.input_schema_json.decode(),
        executor=Executor.MCPGATEWAY,
        journal_generation=journal_generation,
        server_id=tool.server_id,
        original_name=tool.original_name,
        digest=tool.digest,
        needs_approval=tool.needs_approval,
        # Hints are repeated as `is_repeatable` only of trusted servers.
        is_read_only=tool.is_repeatable and tool.hints.read_only,
    )


def _key(execution: Execution) -> api.CallKey:
    return api.CallKey(
        execution_id=execution.dispatch.execution_id,
        chat_id=execution.chat_id,
        owner_epoch=execution.owner_epoch,
        journal_generation=execution.dispatch.journal_generation,
    )


def _request(execution: Execution) -> api.CallToolRequest:
    dispatch, spec = execution.dispatch, execution.spec
    return api.CallToolRequest(
        key=_key(execution),
        context=_chat_context(execution.context, dispatch.mode),
        server_id=spec.server_id,
        original_name=spec.original_name,
        expected_digest=spec.digest,
        arguments_json=dispatch.call.args_json.encode(),
        answer=None if execution.answer is None else _answer(execution.answer),
    )


def _answer(answer: InputAnswer) -> tool_pb2.InputAnswer:
    return tool_pb2.InputAnswer(
        request_id=answer.request_id,
        action=ACTIONS[answer.action],
        content_json=answer.content_json.encode(),
    )


def question_of(asked: tool_pb2.InputRequired) -> InputRequired:
    """Convert what a running call asks; a kind that is not known stays none of those that ask.

    A deadline that is over already ends the question at once.
    """
    expires_ms = asked.expires_after_ms
    return InputRequired(
        request_id=asked.request_id,
        kind=KINDS.get(asked.kind, PendingKind.DISPATCHED),
        message=asked.message,
        schema_json=asked.schema_json.decode(errors="replace"),
        url=asked.url,
        # 0 says that nothing is known.
        expires_s=max(0, expires_ms) / 1000 if expires_ms else None,
    )
