"""A turn with many servers of which some are dead: nothing of it waits for those."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.clock import FakeClock
from parley.rpc import acting_for
from support.mcpgateway.everything_server import everything_server
from support.mcpgateway.gateway import MEMBER, mcp_gateway
from support.mcpgateway.servers import refusing_server
from support.mcpgateway.turn_tools import CONTEXT, add_server, tools_at

SERVERS, DEAD = 20, 3
LISTINGS = 30
FORCED = server_pb2.AVAILABILITY_FORCE_ON


async def test_a_silent_server_does_not_take_the_whole_time_of_a_listing(
    tmp_path: Path, mcp_database: str
) -> None:
    never = asyncio.Event()

    async def keep_silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await never.wait()
        writer.close()

    silent = await asyncio.start_server(keep_silent, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with (
        silent,
        everything_server() as every,
        mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8") as gateway,
    ):
        ids = [
            await add_server(gateway, slug, url, availability=FORCED)
            for slug, url in (("well", every.url), ("silent", f"http://127.0.0.1:{port}/mcp"))
        ]
        request = api.ListToolsRequest(
            context=api.ChatContext(chat_id="c", root_chat_id="c"), server_ids=ids
        )
        with acting_for(MEMBER):
            # The caller waits a shorter time than mcpgateway does for a server.
            listed = await gateway.runtime.ListTools(request, timeout=6)
        never.set()
    assert [each.state for each in listed.servers] == [
        server_pb2.SERVER_STATE_READY,
        server_pb2.SERVER_STATE_UNAVAILABLE,
    ]
    assert {tool.model_name.partition("__")[0] for tool in listed.tools} == {"well"}


@pytest.mark.slow
async def test_turns_with_dead_servers_contact_none_of_them(
    tmp_path: Path, mcp_database: str
) -> None:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        dead = [await enter(refusing_server()) for _ in range(DEAD)]
        every = await enter(everything_server())
        # Time stands still, so that no pause is over.
        clock = FakeClock()
        gateway = await enter(
            mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8", clock=clock)
        )
        for number in range(SERVERS):
            url = dead[number].url if number < DEAD else every.url
            server_id = await add_server(gateway, f"server-{number}", url, availability=FORCED)
            # One after the other, and with time: the machine may be busy.
            with acting_for(MEMBER):
                await gateway.tools.ListServerTools(
                    tools_api.ListServerToolsRequest(server_id=server_id), timeout=60
                )
        tools = tools_at(gateway, clock=clock)
        listed = await tools.list_tools(CONTEXT)
        reports = await tools.reports(CONTEXT)
        assert sum(bool(report.problem) for report in reports) == DEAD
        contacted = sum(server.connections for server in dead)
        assert contacted >= DEAD
        for _ in range(LISTINGS):
            tools.forget_catalogues()
            assert await tools.list_tools(CONTEXT) == listed
        assert sum(server.connections for server in dead) == contacted
