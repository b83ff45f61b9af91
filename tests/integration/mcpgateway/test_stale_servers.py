"""Servers that another process switched off, while this one still has them in memory."""

from typing import Any

import grpc
import pytest

from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.postgres import Database
from parley.rpc import acting_for, problem_of
from support.mcpgateway.gateway import MEMBER, McpGateway

#: Without a notice, as if it was lost.
SWITCH_OFF = "UPDATE mcp.servers SET is_enabled = false, version = version + 1"


async def test_resources_and_prompts_are_not_asked_of_a_server_that_was_switched_off(
    gateway: McpGateway, database: Database
) -> None:
    server_id = str(await database.pool.fetchval("SELECT id FROM mcp.servers"))
    requests: list[tuple[Any, Any]] = [
        (gateway.tools.ListResources, tools_api.ListResourcesRequest(server_id=server_id)),
        (
            gateway.tools.ReadResource,
            tools_api.ReadResourceRequest(server_id=server_id, uri="memo://note"),
        ),
        (gateway.tools.ListServerPrompts, tools_api.ListServerPromptsRequest(server_id=server_id)),
        (
            gateway.tools.GetPrompt,
            tools_api.GetPromptRequest(server_id=server_id, name="greet", arguments={}),
        ),
    ]
    for method, request in requests:
        with acting_for(MEMBER):
            await gateway.tools.ListServerTools(
                tools_api.ListServerToolsRequest(server_id=server_id)
            )
            await database.pool.execute(SWITCH_OFF)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await method(request)
        assert problem_of(refused.value).reason == "SERVER_DISABLED"
        await database.pool.execute("UPDATE mcp.servers SET is_enabled = true")
