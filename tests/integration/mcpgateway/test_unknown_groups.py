"""Servers for groups while the groups of users cannot be read."""

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import grpc
import pytest

from parley.api.mcp.v1 import runtime_service_pb2 as runtime_api
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.rpc import Problem, acting_for, problem_of
from support.mcpgateway.gateway import MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.logins import CHAT, create_server
from support.mcpgateway.restrictions import restrict


@pytest.fixture
async def gateway(tmp_path: Path, mcp_database: str) -> AsyncIterator[McpGateway]:
    async with mcp_gateway(tmp_path, mcp_database) as running:
        yield running


async def refused(calling: Awaitable[object]) -> Problem:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await calling
    return problem_of(caught.value)


async def test_servers_of_groups_that_cannot_be_read_are_not_left_out_silently(
    gateway: McpGateway,
) -> None:
    group, url = "01900000-0000-7000-8000-00000000000d", "https://a.example/mcp"
    on = server_pb2.AVAILABILITY_DEFAULT_ON
    none = server_pb2.AUTH_KIND_NONE
    server_id = await create_server(gateway, url, auth_kind=none, availability=on)
    await restrict(gateway, server_id, group_ids=[group])
    runtime = gateway.runtime
    with acting_for(MEMBER):
        by_default, stored = [
            await runtime.ResolveSelection(
                runtime_api.ResolveSelectionRequest(
                    context=CHAT, uses_defaults=not ids, stored_server_ids=ids
                )
            )
            for ids in ([], [server_id])
        ]
        listed = await runtime.ListTools(
            runtime_api.ListToolsRequest(context=CHAT, server_ids=[server_id])
        )
        requested = runtime_api.ServerSelection(server_ids=[server_id])
        chosen = await refused(
            runtime.ResolveSelection(
                runtime_api.ResolveSelectionRequest(context=CHAT, requested=requested)
            )
        )
        shown = await refused(gateway.servers.ListServers(api.ListServersRequest()))
    for selection in (by_default, stored):
        assert list(selection.effective_server_ids) == [server_id]
    (outcome,) = listed.servers
    assert (outcome.state, list(listed.tools)) == (server_pb2.SERVER_STATE_UNAVAILABLE, [])
    assert "who may use" in outcome.message
    assert (chosen.reason, shown.reason) == ("ACCESS_UNKNOWN", "ACCESS_UNKNOWN")
