"""Implements `McpToolService`: servers as users use them outside of chats."""

import base64
import hashlib
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import msgspec

from mcpgateway.admin.pages import place_of, token_of
from mcpgateway.client.call import CallEnd, CallKey, CallRecord, CallRequest, Outcome
from mcpgateway.client.content import (
    BlobPart,
    LinkPart,
    Part,
    ResourcePart,
    StructuredPart,
    TextPart,
    UnknownPart,
)
from mcpgateway.client.sessions import Sessions
from mcpgateway.runtime.call_executor import CallExecutor
from mcpgateway.runtime.call_starter import CallStarter
from mcpgateway.runtime.catalogues import CatalogueCache
from mcpgateway.runtime.convert import check_arguments, reason_to_proto
from mcpgateway.runtime.journal import TOKEN_PREFIX
from mcpgateway.runtime.recorded_calls import CallFilter, RecordedCall, RecordedCalls
from mcpgateway.runtime.running_call import PreparedCall
from mcpgateway.runtime.tool_access import blocking_error
from mcpgateway.runtime.tool_listing import ServerOutcome, ToolListing
from mcpgateway.servers.access import Access, CallerContext
from mcpgateway.servers.definitions import Definitions
from mcpgateway.servers.domain import ChatContext, Reason, Server, ServerId, ServerState, Target
from mcpgateway.servers.errors import CallAcknowledged, ServerNotFound
from parley.api.mcp.v1 import server_pb2, tool_pb2
from parley.api.mcp.v1 import tool_service_pb2 as api
from parley.api.mcp.v1.tool_service_pb2_grpc import McpToolServiceServicer
from parley.identity import Role
from parley.rpc import current_caller

TOOLS_PER_PAGE: Final = 200
CALLS_PER_PAGE: Final = 50
WAIT_S: Final = 60.0
CALL_S_MAX: Final = 600.0
READERS_OF_ALL: Final = frozenset({Role.OWNER, Role.ADMIN, Role.AUDITOR})


class ToolServicer(McpToolServiceServicer):
    """Lists and calls tools, resources and prompts for users, with their own access."""

    def __init__(
        self,
        access: Access,
        listing: ToolListing,
        catalogues: CatalogueCache,
        definitions: Definitions,
        executor: CallExecutor,
        starter: CallStarter,
        sessions: Sessions,
        recorded: RecordedCalls,
    ) -> None:
        self._access = access
        self._listing = listing
        self._catalogues = catalogues
        self._definitions = definitions
        self._executor = executor
        self._starter = starter
        self._sessions = sessions
        self._recorded = recorded

    async def ListServerTools(  # noqa: N802 (the name is the proto's)
        self, request: api.ListServerToolsRequest, context: Any
    ) -> api.ListServerToolsResponse:
        """Return a page of the tools that a server offers the caller."""
        caller = _caller()
        listing = await self._listing.list(
            caller, [request.server_id], wait_s=WAIT_S, allow_stale=True
        )
        outcome = listing.outcomes[0]
        if outcome.state is ServerState.EXCLUDED and outcome.reason is Reason.SERVER_NOT_FOUND:
            raise ServerNotFound(request.server_id)
        response = _listing_response(outcome)
        offered = [
            api.ServerTool(
                model_name=each.model_name,
                original_name=each.tool.name,
                title=each.tool.title,
                description=each.tool.description,
                input_schema_json=each.tool.input_schema_json.decode(),
                digest=each.tool.digest,
                needs_approval=each.needs_approval,
            )
            for each in listing.tools
        ]
        if outcome.quarantined_tool_count:
            offered += await self._quarantined(request.server_id, caller)
        offered.sort(key=lambda tool: tool.original_name)
        after = place_of(request.page_token, str) or ""
        rest = [tool for tool in offered if tool.original_name > after]
        size = request.page_size or TOOLS_PER_PAGE
        response.tools.extend(rest[:size])
        if len(rest) > size:
            response.next_page_token = token_of(rest[size - 1].original_name)
        return response

    async def CallServerTool(  # noqa: N802 (the name is the proto's)
        self, request: api.CallServerToolRequest, context: Any
    ) -> api.CallServerToolResponse:
        """Call a tool once and return its result."""
        caller = _caller()
        # Derived from user and request id, so that no user can name the call of another.
        digest = hashlib.sha256(f"{caller.user_id}\0{request.request_id}".encode()).hexdigest()
        key = CallKey(f"direct-{digest}", f"{TOKEN_PREFIX}user:{caller.user_id}", "", 0)
        arguments = check_arguments(request.arguments_json.encode())
        server_id = ServerId(request.server_id)
        call_request = CallRequest(
            key, server_id, caller.user_id, request.original_name, arguments, 0, 0
        )
        opened = await self._executor.attach(call_request)
        if opened is None:

            async def prepare() -> PreparedCall:
                target = await self._access.target_for(request.server_id, caller)
                blocked = await blocking_error(self._catalogues, target, request.original_name, "")
                return PreparedCall(target, blocked, target.server.version)

            opened = await self._starter.start(
                call_request,
                prepare,
                lambda server: _within_limits(call_request, server),
                may_ask=False,
            )
        if opened.record.is_acknowledged:
            raise CallAcknowledged(key.execution_id)
        record = opened.record
        async for update in self._executor.follow(opened.record):
            if isinstance(update, CallRecord):
                record = update
        return api.CallServerToolResponse(result=_result(record))

    async def ListResources(  # noqa: N802 (the name is the proto's)
        self, request: api.ListResourcesRequest, context: Any
    ) -> api.ListResourcesResponse:
        """Return the resources of a server."""
        found = await self._sessions.list_resources(await self._target(request.server_id))
        return api.ListResourcesResponse(
            resources=[
                api.ServerResource(
                    uri=each.uri,
                    is_template=each.is_template,
                    name=each.name,
                    title=each.title,
                    description=each.description,
                    media_type=each.media_type,
                )
                for each in found
            ]
        )

    async def ReadResource(  # noqa: N802 (the name is the proto's)
        self, request: api.ReadResourceRequest, context: Any
    ) -> api.ReadResourceResponse:
        """Return the contents of a resource."""
        target = await self._target(request.server_id)
        parts = await self._sessions.read_resource(target, request.uri)
        return api.ReadResourceResponse(content_json=_content_json(parts))

    async def ListServerPrompts(  # noqa: N802 (the name is the proto's)
        self, request: api.ListServerPromptsRequest, context: Any
    ) -> api.ListServerPromptsResponse:
        """Return the prompts of a server."""
        found = await self._sessions.list_prompts(await self._target(request.server_id))
        return api.ListServerPromptsResponse(
            prompts=[
                api.ServerPrompt(
                    name=each.name,
                    title=each.title,
                    description=each.description,
                    arguments=[
                        api.ServerPromptArgument(
                            name=given.name,
                            description=given.description,
                            is_required=given.is_required,
                        )
                        for given in each.arguments
                    ],
                )
                for each in found
            ]
        )

    async def GetPrompt(  # noqa: N802 (the name is the proto's)
        self, request: api.GetPromptRequest, context: Any
    ) -> api.GetPromptResponse:
        """Return a prompt with its arguments filled in."""
        target = await self._target(request.server_id)
        filled = await self._sessions.get_prompt(target, request.name, request.arguments)
        return api.GetPromptResponse(description=filled.description, text=filled.text)

    async def ListCalls(  # noqa: N802 (the name is the proto's)
        self, request: api.ListCallsRequest, context: Any
    ) -> api.ListCallsResponse:
        """Return a page of recorded calls; members see their own only."""
        user = current_caller().user
        reads_all = user is not None and user.role in READERS_OF_ALL
        own = "" if user is None else user.id
        if not reads_all and request.user_id not in ("", own):
            return api.ListCallsResponse()
        outcome = "" if request.outcome == 0 else _outcome_word(request.outcome)
        wanted = CallFilter(
            request.user_id if reads_all else own, request.server_id, request.chat_id, outcome
        )
        size = request.page_size or CALLS_PER_PAGE
        before = place_of(request.page_token, tuple[datetime, str])
        found = await self._recorded.page(wanted, before, size + 1)
        page = found[:size]
        is_last = len(found) <= size
        return api.ListCallsResponse(
            calls=[_call_to_proto(call) for call in page],
            next_page_token=""
            if is_last
            else token_of((page[-1].started_at, page[-1].execution_id)),
        )

    async def _target(self, server_id: str) -> Target:
        # These requests have no journal, which would refuse a server that changed.
        return await self._access.stored_target_for(server_id, _caller())

    async def _quarantined(self, server_id: str, caller: CallerContext) -> list[api.ServerTool]:
        known = self._catalogues.known(await self._access.target_for(server_id, caller))
        if known is None:
            return []
        before = await self._definitions.approved(server_id, sorted(known.quarantined))
        tools = [tool for name, tool in known.catalogue.tools.items() if name in known.quarantined]
        return [
            api.ServerTool(
                original_name=tool.name,
                title=tool.title,
                description=tool.description,
                input_schema_json=tool.input_schema_json.decode(),
                digest=tool.digest,
                is_quarantined=True,
                approved_description=before[tool.name].description if tool.name in before else "",
                approved_input_schema_json=(
                    before[tool.name].input_schema_json if tool.name in before else ""
                ),
            )
            for tool in tools
        ]


def _within_limits(call_request: CallRequest, server: Server) -> CallRequest:
    limits = server.settings.limits
    return replace(
        call_request,
        idle_s=limits.idle_timeout_ms / 1000,
        limit_s=min(limits.call_timeout_ms / 1000, CALL_S_MAX),
    )


def _caller() -> CallerContext:
    user = current_caller().user
    return CallerContext("" if user is None else user.id, ChatContext())


def _listing_response(outcome: ServerOutcome) -> api.ListServerToolsResponse:
    return api.ListServerToolsResponse(
        state=server_pb2.ServerState.Value(f"SERVER_STATE_{outcome.state.name}"),
        reason=reason_to_proto(outcome.reason),
        message=outcome.message,
        instructions=outcome.instructions,
        dropped_tool_count=outcome.dropped_tool_count,
    )


def _outcome_word(number: int) -> str:
    return tool_pb2.CallOutcome.Name(number).removeprefix("CALL_OUTCOME_").lower()  # type: ignore[arg-type]


def _result(record: CallRecord) -> api.ServerCallResult:
    end = record.end or CallEnd(Outcome.UNKNOWN)
    duration_ms = 0
    if record.started_at is not None and record.finished_at is not None:
        duration_ms = round((record.finished_at - record.started_at).total_seconds() * 1000)
    return api.ServerCallResult(
        outcome=tool_pb2.CallOutcome.Value(f"CALL_OUTCOME_{end.outcome.name}"),
        content_json=_content_json(end.parts),
        reason=reason_to_proto(end.reason),
        message=end.message,
        original_bytes=end.original_bytes,
        duration_ms=duration_ms,
    )


def _content_json(parts: tuple[Part, ...]) -> str:
    return msgspec.json.encode([_content(part) for part in parts]).decode()


def _content(part: Part) -> dict[str, object]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case BlobPart(kind, media_type, data):
            return {"type": kind, "media_type": media_type, "data": _base64(data)}
        case ResourcePart(uri, media_type, body, is_text):
            content = {"text": body.decode()} if is_text else {"data": _base64(body)}
            return {"type": "resource", "uri": uri, "media_type": media_type, **content}
        case LinkPart(uri, name, description, media_type):
            return {
                "type": "resource_link",
                "uri": uri,
                "name": name,
                "description": description,
                "media_type": media_type,
            }
        case StructuredPart(json):
            return {"type": "structured", "data": msgspec.Raw(json)}
        case UnknownPart(name):
            return {"type": "unknown", "name": name}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _call_to_proto(call: RecordedCall) -> api.RecordedCall:
    message = api.RecordedCall(
        execution_id=call.execution_id,
        server_id=call.server_id,
        slug=call.slug,
        original_name=call.tool,
        user_id=call.user_id,
        chat_id=call.chat_id,
        duration_ms=call.duration_ms,
        outcome=tool_pb2.CallOutcome.Value(f"CALL_OUTCOME_{call.outcome.name}"),
        reason=reason_to_proto(call.reason),
        original_bytes=call.original_bytes,
    )
    message.started_at.FromDatetime(call.started_at)
    return message
