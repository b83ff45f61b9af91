"""A server that is deleted: its sessions are closed at it, and nobody can use it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from mcp import Client

from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.clock import SystemClock
from parley.rpc import acting_for, problem_of
from support.host.ports import free_port
from support.mcpgateway.gateway import ADMIN, McpGateway, mcp_gateway
from support.mcpgateway.server_calls import called
from support.mcpgateway.servers import session_process, until_listening

WITHIN_S = 60


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Give the port of a server that keeps sessions."""
    port = free_port()
    with session_process(port, "mcp"):
        await until_listening(port)
        yield port


@pytest.fixture
async def gateway(tmp_path: Path, mcp_database: str, port: int) -> AsyncIterator[McpGateway]:
    async with mcp_gateway(tmp_path, mcp_database, allowed=f"127.0.0.1:{port}") as running:
        yield running


async def test_the_sessions_of_a_deleted_server_are_closed(gateway: McpGateway, port: int) -> None:
    url = f"http://127.0.0.1:{port}/mcp"
    settings = server_pb2.McpServerSettings(slug="kept", url=url, is_enabled=True)
    with acting_for(ADMIN):
        created = await gateway.servers.CreateServer(
            api.CreateServerRequest(request_id="create", settings=settings)
        )
        server_id = created.server.server_id
        await called(gateway, ADMIN, server_id, "add", "call", a=1, b=2)
        await gateway.servers.DeleteServer(
            api.DeleteServerRequest(request_id="delete", server_id=server_id)
        )
    async with asyncio.timeout(WITHIN_S), Client(url, mode="legacy") as client:

        async def deleted() -> str:
            counted = await client.call_tool("count", {"what": "deleted"})
            return str(counted.content[0].text)  # type: ignore[union-attr]

        while await deleted() == "0":
            await SystemClock().sleep(0.05)
        assert await deleted() == "1"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await called(gateway, ADMIN, server_id, "add", "again", a=1, b=2)
    assert problem_of(refused.value).reason == "SERVER_NOT_FOUND"
