"""Operations on a connected MCP server: list its tools, call a tool."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from mcp import Client, MCPError
from mcp_types import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    InputResponses,
    ListToolsResult,
)
from pydantic import TypeAdapter, ValidationError

from mcpgateway.client.call import OnProgress, Progress
from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.error_answers import is_unreadable, lost_its_session, served_error
from mcpgateway.client.lenient_listing import LENIENT_VERSION
from mcpgateway.client.questions import Ask, answer_all, elicitations_of
from mcpgateway.client.translation import KeptTools, clean_text, cut_text, tool_answer
from mcpgateway.servers.domain import Catalogue
from parley.egress.transport import EXCHANGE

PAGES_MAX: Final = 100
#: Deeper than any definition may be, and less deep than the SDK's reader of JSON refuses.
LISTING_DEPTH_MAX: Final = 128
INSTRUCTIONS_BYTES_MAX: Final = 2048
ROUNDS_MAX: Final = 10
RESULT: Final[TypeAdapter[CallToolResult | InputRequiredResult]] = TypeAdapter(
    CallToolResult | InputRequiredResult
)
# Error codes that concern the protocol, not the call.
PROTOCOL_ERROR_CODES: Final = (HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION)


async def list_tools(client: Client) -> Catalogue:
    """Return all pages of the server's tools, within limits."""
    kept = KeptTools()
    cursor: str | None = None
    ttl_ms: int | None = None
    for _ in range(PAGES_MAX):
        try:
            page = await _page_of_tools(client, cursor)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and client.server_capabilities.tools is None:
                break
            raise
        for tool in page.tools:
            kept.add((tool,))
            if not kept.is_full:
                await asyncio.sleep(0)  # noqa: TID251 (no time passes; others run)
        ttl_ms = page.ttl_ms if ttl_ms is None else ttl_ms
        cursor = page.next_cursor
        if cursor is None or kept.is_full:
            break
    return Catalogue(
        tools=kept.tools,
        dropped=kept.dropped,
        instructions=cut_text(client.instructions or "", INSTRUCTIONS_BYTES_MAX),
        ttl_s=None if ttl_ms is None else ttl_ms / 1000,
    )


async def _page_of_tools(client: Client, cursor: str | None) -> ListToolsResult:
    """Return a page; if it cannot be read it is asked for again, without what is wrong in it."""
    try:
        return await client.list_tools(cursor=cursor)
    except (MCPError, ValidationError) as error:
        exchange = EXCHANGE.get()
        is_invalid = isinstance(error, ValidationError) or error.code == PARSE_ERROR
        if not is_invalid or exchange is None or LENIENT_VERSION.get() is not None:
            raise
        exchange.depth_max = LISTING_DEPTH_MAX
    LENIENT_VERSION.set(client.protocol_version)
    return await client.list_tools(cursor=cursor)


@dataclass(slots=True)
class ToolCall:
    """A call of a tool, which goes on after each answer of a person.

    Attributes:
        tool: The server's own name of the tool.
        arguments: Its arguments.
        on_progress: Is called with the progress of the tool.
        ask: Asks a person what the tool wants to know.
        rounds: How often the server has asked; afterwards it is never called from the beginning.
    """

    tool: str
    arguments: dict[str, Any]
    on_progress: OnProgress
    ask: Ask
    rounds: int = 0
    _responses: InputResponses | None = field(default=None, repr=False)
    _state: str | None = field(default=None, repr=False)

    async def run(self, client: Client) -> ToolAnswer:
        """Call the tool; an error response of the server is an answer too."""
        try:
            with elicitations_of(client).calling(self.ask):
                return await self._until_answered(client)
        except MCPError as error:
            exchange = EXCHANGE.get()
            answer = None if exchange is None else served_error(error, exchange)
            if exchange is None or answer is None or answer.code in PROTOCOL_ERROR_CODES:
                raise
            if is_unreadable(answer) or lost_its_session(answer, exchange):
                raise
            return _error_answer(answer.message)

    async def _until_answered(self, client: Client) -> ToolAnswer:
        while True:
            result = await self._send(client)
            if isinstance(result, CallToolResult):
                return tool_answer(result)
            self.rounds += 1
            if self.rounds > ROUNDS_MAX:
                return _error_answer(f"the tool asked more than {ROUNDS_MAX} times")
            answered = await answer_all(result.input_requests or {}, self.ask)
            if isinstance(answered, ErrorData):
                return _error_answer(f"the tool asked what cannot be answered: {answered.message}")
            self._responses, self._state = answered, result.request_state

    async def _send(self, client: Client) -> CallToolResult | InputRequiredResult:
        params = CallToolRequestParams(
            name=self.tool,
            arguments=self.arguments,
            input_responses=self._responses,
            request_state=self._state,
        )
        request = CallToolRequest(params=params)
        send = client.session.send_request
        try:
            # Not `call_tool`: it validates the result afterwards and would lose it on failure.
            return await send(request, RESULT, progress_callback=self._note)
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # The server requires headers that only its listing contains, and did not run the tool.
        await list_tools(client)
        return await send(request, RESULT, progress_callback=self._note)

    async def _note(self, progress: float, total: float | None, message: str | None) -> None:
        self.on_progress(Progress(progress, total, clean_text(message or "")[:1024]))


def _error_answer(text: str) -> ToolAnswer:
    return ToolAnswer(is_error=True, parts=(TextPart(clean_text(text)),))
