"""What users do with one MCP server."""

import json
from typing import Any

from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.identity import User
from parley.rpc import acting_for
from support.mcpgateway.gateway import McpGateway


async def called(
    gateway: McpGateway,
    user: User,
    server_id: str,
    tool: str,
    request_id: str = "call",
    **given: Any,
) -> tools_api.ServerCallResult:
    """Call a tool of a server as a user."""
    with acting_for(user):
        response = await gateway.tools.CallServerTool(
            tools_api.CallServerToolRequest(
                request_id=request_id,
                server_id=server_id,
                original_name=tool,
                arguments_json=json.dumps(given),
            )
        )
    return response.result


async def listed(
    gateway: McpGateway, user: User, server_id: str
) -> tools_api.ListServerToolsResponse:
    """List the tools of a server as a user."""
    with acting_for(user):
        return await gateway.tools.ListServerTools(
            tools_api.ListServerToolsRequest(server_id=server_id)
        )
