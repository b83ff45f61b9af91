"""A program: an MCP server whose tools ask the person in the middle of a call.

python -m support.mcpgateway.eliciting_server PORT modern|mcp|sse
"""

import logging
import sys
from collections import Counter
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

from support.mcpgateway.session_server import HandshakeOnly

starts: Counter[str] = Counter()
THOUGHT = [SamplingMessage(role="user", content=TextContent(type="text", text="Think."))]
SCHEMA = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


class Colour(BaseModel):
    """What is asked."""

    colour: str


def eliciting(*, is_modern: bool) -> MCPServer:
    """Make the server, of the current protocol or of the one before."""
    server = MCPServer("eliciting")

    @server.tool(structured_output=False)
    def count(name: str) -> str:
        """Tell how often a tool began."""
        return str(starts[name])

    if is_modern:

        @server.tool(structured_output=False)
        def paint(context: Context[Any, Any]) -> str | InputRequiredResult:
            """Paint the house."""
            answered = (context.input_responses or {}).get("colour")
            if not isinstance(answered, ElicitResult):
                starts["paint"] += 1
                params = ElicitRequestFormParams(message="Which colour?", requested_schema=SCHEMA)
                requests: dict[str, InputRequest] = {"colour": ElicitRequest(params=params)}
                return InputRequiredResult(input_requests=requests, request_state="house")
            colour = (answered.content or {}).get("colour")
            return f"{answered.action} {colour} {context.request_state}"

        @server.tool(structured_output=False)
        def think() -> InputRequiredResult:
            """Want to use the model of whoever calls."""
            wanted = CreateMessageRequestParams(messages=THOUGHT, max_tokens=10)
            asked: dict[str, InputRequest] = {"thought": CreateMessageRequest(params=wanted)}
            return InputRequiredResult(input_requests=asked, request_state="mind")

        return server

    @server.tool(structured_output=False, name="paint")
    async def paint_now(context: Context[Any, Any]) -> str:
        """Paint the house."""
        starts["paint"] += 1
        answered = await context.elicit("Which colour?", Colour)
        colour = answered.data.colour if answered.action == "accept" else None
        return f"{answered.action} {colour} house"

    @server.tool(structured_output=False, name="think")
    async def think_now(context: Context[Any, Any]) -> str:
        """Want to use the model of whoever calls."""
        thought = await context.session.create_message(THOUGHT, max_tokens=10)
        return str(thought.content)

    return server


def main(port: str, kind: str) -> None:
    """Serve until killed."""
    # Over SSE the client finds the current protocol too.
    server = eliciting(is_modern=kind != "mcp")
    application = server.sse_app() if kind == "sse" else server.streamable_http_app()
    logging.getLogger().setLevel(logging.ERROR)
    served = HandshakeOnly(application) if kind == "mcp" else application
    uvicorn.run(served, host="127.0.0.1", port=int(port), log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
