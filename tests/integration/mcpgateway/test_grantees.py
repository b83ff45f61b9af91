"""Restricting a server while no gateway says who exists."""

import grpc
import pytest

from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.rpc import acting_for, problem_of
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway
from support.mcpgateway.restrictions import restrict

URL = "https://mcp.example/mcp"


async def test_a_server_is_not_restricted_while_no_gateway_answers(gateway: McpGateway) -> None:
    settings = server_pb2.McpServerSettings(slug="some", url=URL, user_ids=[MEMBER.id])
    request = api.CreateServerRequest(request_id="create", settings=settings)
    with acting_for(ADMIN), pytest.raises(grpc.aio.AioRpcError) as caught:
        await gateway.servers.CreateServer(request)

    refused = problem_of(caught.value)
    assert (refused.status, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "ACCESS_UNKNOWN")


async def test_users_who_are_stored_stay_while_no_gateway_answers(gateway: McpGateway) -> None:
    settings = server_pb2.McpServerSettings(slug="some", url=URL)
    with acting_for(ADMIN):
        made = await gateway.servers.CreateServer(
            api.CreateServerRequest(request_id="create", settings=settings)
        )
        server_id = made.server.server_id
        await restrict(gateway, server_id, user_ids=[MEMBER.id, ADMIN.id])
        request = api.UpdateServerRequest(
            request_id="change",
            server_id=server_id,
            settings=server_pb2.McpServerSettings(user_ids=[ADMIN.id]),
        )
        request.update_mask.paths.append("user_ids")
        changed = await gateway.servers.UpdateServer(request)

    assert list(changed.server.settings.user_ids) == [ADMIN.id]
