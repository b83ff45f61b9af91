"""Implements `McpRuntimeService`: the tools of servers in chats."""

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from mcpgateway.client.call import CallKey, CallRecord, CallRequest, Progress
from mcpgateway.client.questions import Answer, AnswerAction
from mcpgateway.runtime.call_executor import CallExecutor, JournaledCall
from mcpgateway.runtime.call_starter import CallStarter
from mcpgateway.runtime.catalogues import CatalogueCache
from mcpgateway.runtime.convert import (
    check_arguments,
    outcome_to_proto,
    progress_to_proto,
    question_to_proto,
    reason_to_proto,
    result_to_proto,
    tool_to_proto,
)
from mcpgateway.runtime.journal import TOKEN_PREFIX, Journal
from mcpgateway.runtime.running_call import PreparedCall
from mcpgateway.runtime.tool_access import prepared_call
from mcpgateway.runtime.tool_listing import Listing, ToolListing
from mcpgateway.servers.access import Access, CallerContext, select
from mcpgateway.servers.domain import Availability, ChatContext, Server, ServerId
from mcpgateway.servers.errors import (
    CallAcknowledged,
    CallNotFound,
    CatalogueChanged,
    InvalidRequest,
)
from mcpgateway.servers.known_servers import KnownServers
from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import tool_pb2
from parley.api.mcp.v1.runtime_service_pb2_grpc import McpRuntimeServiceServicer
from parley.rpc import current_caller, remaining_s

WAIT_MS: Final = 10_000
WAIT_MS_MAX: Final = 60_000
SHARE_OF_DEADLINE: Final = 0.7
SERVERS_MAX: Final = 200
TOOLS_PER_PAGE: Final = 500
TOOLS_PER_PAGE_MAX: Final = 2_000
PAGE_BYTES_MAX: Final = 3 * 1024 * 1024
ACKNOWLEDGED_AT_ONCE_MAX: Final = 500
ANSWER_BYTES_MAX: Final = 65536
ACTIONS: Final = {
    tool_pb2.INPUT_ACTION_ACCEPT: AnswerAction.ACCEPT,
    tool_pb2.INPUT_ACTION_DECLINE: AnswerAction.DECLINE,
    tool_pb2.INPUT_ACTION_CANCEL: AnswerAction.CANCEL,
}


class RuntimeServicer(McpRuntimeServiceServicer):
    """Serves tools of the stored servers, and calls through the journal."""

    def __init__(
        self,
        servers: KnownServers,
        access: Access,
        listing: ToolListing,
        catalogues: CatalogueCache,
        journal: Journal,
        executor: CallExecutor,
        starter: CallStarter,
    ) -> None:
        self._servers = servers
        self._access = access
        self._listing = listing
        self._catalogues = catalogues
        self._journal = journal
        self._executor = executor
        self._starter = starter

    async def ResolveSelection(  # noqa: N802 (the name is the proto's)
        self, request: api.ResolveSelectionRequest, context: Any
    ) -> api.ResolveSelectionResponse:
        """Return which servers a chat uses."""
        stored = tuple(request.stored_server_ids)
        requested = tuple(request.requested.server_ids) if request.HasField("requested") else None
        if len(stored) > 100 or len(requested or ()) > 100:
            raise InvalidRequest({"requested": "give at most 100 servers"})
        user_id = _caller_context(request.context).user_id
        visible = self._access.visible
        every = await self._servers.enabled(Availability.FORCE_ON)
        # If the servers that are forced on cannot be determined, the call fails; none is left out.
        forced = await visible(every.values(), user_id)
        chosen = await self._servers.find((*stored, *(requested or ())))
        # What was chosen before stays: its listing says that its users cannot be found out.
        kept = [server for server in chosen.values() if server.id in stored]
        new = [server for server in chosen.values() if server.id not in stored]
        found = {
            **await visible(kept, user_id, keeps_undecided=True),
            **await visible(new, user_id),
        }
        defaults: Mapping[str, Server] = {}
        if request.uses_defaults and requested is None:
            every = await self._servers.enabled(Availability.DEFAULT_ON)
            defaults = await visible(every.values(), user_id, keeps_undecided=True)
        selection = select(
            _chat(request.context),
            requested=requested,
            stored=stored,
            known={**found, **defaults, **forced},
            forced=tuple(forced),
            defaults=tuple(defaults),
        )
        return api.ResolveSelectionResponse(
            stored_server_ids=selection.stored,
            effective_server_ids=selection.effective,
            forced_server_ids=selection.forced,
            invalid_servers=[
                api.InvalidServer(server_id=server_id, reason=reason_to_proto(reason))
                for server_id, reason in selection.invalid
            ],
        )

    async def ListTools(  # noqa: N802 (the name is the proto's)
        self, request: api.ListToolsRequest, context: Any
    ) -> api.ListToolsResponse:
        """List the tools of several servers."""
        _check_listing(request)
        listing = await self._listing.list(
            _caller_context(request.context),
            tuple(request.server_ids),
            wait_s=_wait_s(request.wait_ms, remaining_s()),
            allow_stale=request.allow_stale,
        )
        digest = listing.digest
        first = _first_of_page(request.page_token, digest)
        tools = _page(listing, first, request.page_size or TOOLS_PER_PAGE)
        following = first + len(tools)
        is_last = following >= len(listing.tools)
        return api.ListToolsResponse(
            tools=tools,
            servers=[outcome_to_proto(outcome) for outcome in listing.outcomes],
            digest=digest,
            journal_generation=self._journal.generation,
            next_page_token="" if is_last else _page_token(digest, following),
        )

    async def CallTool(  # noqa: N802 (the name is the proto's)
        self, request: api.CallToolRequest, context: Any
    ) -> AsyncIterator[api.CallToolResponse]:
        """Call a tool, or attach to the call with the same execution id."""
        call_request = self._call_request(request)
        opened = await self._attached(call_request)
        if opened is None and (request.HasField("answer") or not call_request.tool):
            # It ran, and asked: what is not there any more must not be made again.
            raise CallNotFound(call_request.key.execution_id)
        if opened is None:
            caller_context = _caller_context(request.context)
            server_id, digest = call_request.server_id, request.expected_digest

            async def prepare() -> PreparedCall:
                tool = call_request.tool
                return await prepared_call(
                    self._access, self._catalogues, server_id, caller_context, tool, digest
                )

            opened = await self._starter.start(
                call_request,
                prepare,
                lambda server: _within_limits(call_request, server, request),
                may_ask=True,
            )
        elif request.HasField("answer"):
            await self._executor.answer(call_request.key.execution_id, *_answer(request.answer))
            # Read again, because it does not ask this any more.
            opened = await self._attached(call_request) or opened
        if opened.record.is_acknowledged:
            raise CallAcknowledged(call_request.key.execution_id)
        started = api.CallStarted(is_attached=opened.is_attached)
        if opened.record.started_at is not None:
            started.started_at.FromDatetime(opened.record.started_at)
        yield api.CallToolResponse(started=started)
        async for progress_updates in self._executor.follow(opened.record):
            if isinstance(progress_updates, Progress):
                yield api.CallToolResponse(progress=progress_to_proto(progress_updates))
                continue
            if progress_updates.question is not None:
                question = question_to_proto(progress_updates.question)
                yield api.CallToolResponse(input_required=question)
                return
            messages = result_to_proto(progress_updates)
            for chunk in messages.chunks:
                yield api.CallToolResponse(chunk=chunk)
            yield api.CallToolResponse(result=messages.result)

    async def _attached(self, call_request: CallRequest) -> JournaledCall | None:
        """Return the call if it is journaled; without a tool, whatever its tool and arguments are.

        A caller does not know the tool any more when it is not listed since the call began.
        """
        if call_request.tool:
            return await self._executor.attach(call_request)
        return await self._executor.attach_by_key(call_request.key)

    async def GetCall(  # noqa: N802 (the name is the proto's)
        self, request: api.GetCallRequest, context: Any
    ) -> api.GetCallResponse:
        """Return the state of a call."""
        record = await self._journal.find(self._key(request.key))
        response = api.GetCallResponse(state=_state(record))
        if record is not None:
            if record.started_at is not None:
                response.started_at.FromDatetime(record.started_at)
            if record.question is not None:
                response.input_required.CopyFrom(question_to_proto(record.question))
            if record.end is not None:
                response.result.CopyFrom(result_to_proto(record).result)
        return response

    async def CancelCall(  # noqa: N802 (the name is the proto's)
        self, request: api.CancelCallRequest, context: Any
    ) -> api.CancelCallResponse:
        """Cancel a call in any process."""
        record = await self._journal.cancel(self._key(request.key))
        self._executor.cancel(record.key.execution_id)
        return api.CancelCallResponse(state=_state(record))

    async def AckCalls(  # noqa: N802 (the name is the proto's)
        self, request: api.AckCallsRequest, context: Any
    ) -> api.AckCallsResponse:
        """Drop results that the caller has stored."""
        self._journal.check_generation(request.journal_generation)
        if not 1 <= len(request.execution_ids) <= ACKNOWLEDGED_AT_ONCE_MAX:
            raise InvalidRequest({"execution_ids": f"give 1 to {ACKNOWLEDGED_AT_ONCE_MAX}"})
        ids = tuple(dict.fromkeys(request.execution_ids))
        acknowledged = await self._journal.acknowledge(_owner_of_calls(), ids)
        skipped = [execution_id for execution_id in ids if execution_id not in acknowledged]
        return api.AckCallsResponse(skipped_execution_ids=skipped)

    def _call_request(self, request: api.CallToolRequest) -> CallRequest:
        key = self._key(request.key)
        problems = {}
        if request.context.chat_id != key.chat_id:
            problems["context.chat_id"] = "give the chat of the key"
        if len(request.original_name) > 128:
            problems["original_name"] = "give at most 128 characters"
        if request.idle_timeout_ms < 0 or request.call_timeout_ms < 0:
            problems["call_timeout_ms"] = "give no negative timeouts"
        if problems:
            raise InvalidRequest(problems)
        user = current_caller().user
        return CallRequest(
            key=key,
            server_id=ServerId(request.server_id),
            user_id="" if user is None else user.id,
            tool=request.original_name,
            arguments_json=check_arguments(request.arguments_json),
            idle_s=request.idle_timeout_ms / 1000,
            limit_s=request.call_timeout_ms / 1000,
        )

    def _key(self, message: api.CallKey) -> CallKey:
        """Return the key of a call, checked against the journal and the caller."""
        self._journal.check_generation(message.journal_generation)
        is_ours = current_caller().service is not None
        problems = {}
        if not 1 <= len(message.execution_id) <= 128 or "\0" in message.execution_id:
            problems["key.execution_id"] = "give 1 to 128 characters"
        if "\0" in message.chat_id or len(message.chat_id) > 128:
            problems["key.chat_id"] = "give at most 128 characters"
        if is_ours and not message.chat_id:
            problems["key.chat_id"] = "give the chat"
        if is_ours and message.owner_epoch < 1:
            problems["key.owner_epoch"] = "give the epoch of the chat's owner"
        # Otherwise a service token could supersede the owners of other users' chats.
        if not is_ours and (message.chat_id or message.owner_epoch):
            problems["key.chat_id"] = "a service token has no chats and no owner epochs"
        if problems:
            raise InvalidRequest(problems)
        return CallKey(
            message.execution_id, _owner_of_calls(), message.chat_id, message.owner_epoch
        )


def _owner_of_calls() -> str:
    caller = current_caller()
    return f"{TOKEN_PREFIX}{caller.token_id}" if caller.service is None else caller.service.value


def _chat(message: api.ChatContext) -> ChatContext:
    return ChatContext(message.chat_id, message.root_chat_id, message.is_plan_mode)


def _caller_context(message: api.ChatContext) -> CallerContext:
    user = current_caller().user
    return CallerContext("" if user is None else user.id, _chat(message))


def _within_limits(
    call_request: CallRequest, server: Server, request: api.CallToolRequest
) -> CallRequest:
    """Return the request with its timeouts limited to those of the server."""
    limits = server.settings.limits
    idle_ms = min(request.idle_timeout_ms or limits.idle_timeout_ms, limits.idle_timeout_ms)
    call_ms = min(request.call_timeout_ms or limits.call_timeout_ms, limits.call_timeout_ms)
    return replace(call_request, idle_s=idle_ms / 1000, limit_s=call_ms / 1000)


def _state(record: CallRecord | None) -> "tool_pb2.CallState.ValueType":
    if record is None:
        return tool_pb2.CALL_STATE_NEVER_SEEN
    if record.is_acknowledged:
        return tool_pb2.CALL_STATE_ACKNOWLEDGED
    if record.question is not None:
        return tool_pb2.CALL_STATE_INPUT_REQUIRED
    return tool_pb2.CALL_STATE_RUNNING if record.end is None else tool_pb2.CALL_STATE_FINISHED


def _answer(given: tool_pb2.InputAnswer) -> tuple[str, Answer]:
    """Return what was answered, and the id of the question.

    Raises:
        InvalidRequest: There is no action, or the content is no JSON object.
    """
    if given.action not in ACTIONS:
        raise InvalidRequest({"answer.action": "say what was decided"})
    if len(given.content_json) > ANSWER_BYTES_MAX:
        raise InvalidRequest({"answer.content_json": f"give at most {ANSWER_BYTES_MAX} bytes"})
    content = check_arguments(given.content_json) if given.content_json else b""
    return given.request_id, Answer(ACTIONS[given.action], content)


def _wait_s(wait_ms: int, caller_waits_s: float | None) -> float:
    """Return how long to wait for a server: never until the caller's deadline, which fails all."""
    wait_s = (wait_ms or WAIT_MS) / 1000
    return wait_s if caller_waits_s is None else min(wait_s, SHARE_OF_DEADLINE * caller_waits_s)


def _check_listing(request: api.ListToolsRequest) -> None:
    problems = {}
    if not 1 <= len(request.server_ids) <= SERVERS_MAX:
        problems["server_ids"] = f"give 1 to {SERVERS_MAX} servers"
    if not 0 <= request.wait_ms <= WAIT_MS_MAX:
        problems["wait_ms"] = f"give 0 to {WAIT_MS_MAX}"
    if not 0 <= request.page_size <= TOOLS_PER_PAGE_MAX:
        problems["page_size"] = f"give 0 to {TOOLS_PER_PAGE_MAX}"
    if problems:
        raise InvalidRequest(problems)


def _page(listing: Listing, first: int, size: int) -> Sequence[tool_pb2.McpTool]:
    """Return the tools of one page, at least one of them and at most its bytes."""
    tools: list[tool_pb2.McpTool] = []
    room = PAGE_BYTES_MAX
    for offered in listing.tools[first : first + size]:
        tool = tool_to_proto(offered)
        room -= tool.ByteSize()
        if room < 0 and tools:
            break
        tools.append(tool)
    return tools


def _page_token(digest: str, first: int) -> str:
    return base64.urlsafe_b64encode(f"{digest}:{first}".encode()).decode()


def _first_of_page(token: str, digest: str) -> int:
    """Return the index of the page's first tool.

    Raises:
        CatalogueChanged: The tools are not those of the previous page.
        InvalidRequest: The token is invalid.
    """
    if not token:
        return 0
    try:
        seen, _, first = base64.urlsafe_b64decode(token).decode().partition(":")
        index = int(first)
    except ValueError:
        raise InvalidRequest({"page_token": "is not from a previous response"}) from None
    if seen != digest:
        raise CatalogueChanged(digest)
    return max(0, index)
