"""Operations on a connected MCP server: list its tools, call a tool."""

from typing import Any, Final

from mcp import Client, MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
)
from mcp_types import Tool as ProtocolTool

from mcpgateway.client.call import OnProgress, Progress
from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.egress import EXCHANGE
from mcpgateway.client.failures import is_refusal
from mcpgateway.client.translation import clean_text, cut_text, tool_answer, usable_tools
from mcpgateway.servers.domain import Catalogue

PAGES_MAX: Final = 100
TOOLS_MAX: Final = 2000
INSTRUCTIONS_BYTES_MAX: Final = 2048
# Error codes that concern the connection, not the call.
CONNECTION_ERROR_CODES: Final = (CONNECTION_CLOSED, HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION)


async def list_tools(client: Client) -> Catalogue:
    """Return all pages of the server's tools, within limits."""
    tools: list[ProtocolTool] = []
    cursor: str | None = None
    ttl_ms: int | None = None
    for _ in range(PAGES_MAX):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and client.server_capabilities.tools is None:
                break
            raise
        tools += page.tools
        ttl_ms = page.ttl_ms if ttl_ms is None else ttl_ms
        cursor = page.next_cursor
        if cursor is None or len(tools) >= TOOLS_MAX:
            break
    usable, dropped = usable_tools(tools[:TOOLS_MAX])
    return Catalogue(
        tools=usable,
        dropped=dropped + max(0, len(tools) - TOOLS_MAX),
        instructions=cut_text(client.instructions or "", INSTRUCTIONS_BYTES_MAX),
        ttl_s=None if ttl_ms is None else ttl_ms / 1000,
    )


async def call_tool(
    client: Client, tool: str, arguments: dict[str, Any], on_progress: OnProgress
) -> ToolAnswer:
    """Call the tool; an error response of the server is an answer too."""
    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))

    async def note(progress: float, total: float | None, message: str | None) -> None:
        on_progress(Progress(progress, total, clean_text(message or "")[:1024]))

    async def send() -> ToolAnswer:
        # Not `call_tool`: it validates the result afterwards and would lose it on failure.
        return tool_answer(
            await client.session.send_request(request, CallToolResult, progress_callback=note)
        )

    try:
        try:
            return await send()
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
            # The server requires headers that only its listing contains, and did not run the tool.
            await list_tools(client)
            return await send()
    except MCPError as error:
        exchange = EXCHANGE.get()
        if error.code in CONNECTION_ERROR_CODES or exchange is None or is_refusal(exchange):
            raise
        return ToolAnswer(is_error=True, parts=(TextPart(clean_text(error.message)),))
