"""A turn with many servers of which some are dead: nothing of it waits for those."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.tools.mcp_results import ResultFiles
from chatd.tools.mcpgateway import McpTools
from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as servers_api
from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.clock import FakeClock
from parley.rpc import Channels, acting_for
from support.chatd.tools.kept_files import KeptFiles
from support.host.ports import free_port
from support.mcpgateway.everything_server import everything_server
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway

SERVERS, DEAD = 20, 3
LISTINGS = 30
CONTEXT = TurnContext(
    ChatId("00000000-0000-0000-0000-0000000000aa"),
    Owner(OwnerId(MEMBER.id), MEMBER.role),
    mcp_server_ids=None,
)


@dataclass(slots=True)
class DeadServer:
    """Something that hangs up on everyone, and counts them."""

    url: str
    connections: int = 0


@asynccontextmanager
async def dead_server() -> AsyncIterator[DeadServer]:
    port = free_port()
    dead = DeadServer(f"http://127.0.0.1:{port}/mcp")

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dead.connections += 1
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", port)
    try:
        yield dead
    finally:
        server.close()


async def create(gateway: McpGateway, slug: str, url: str) -> str:
    settings = server_pb2.McpServerSettings(
        slug=slug,
        url=url,
        is_enabled=True,
        availability=server_pb2.AVAILABILITY_FORCE_ON,
    )
    with acting_for(ADMIN):
        made = await gateway.servers.CreateServer(
            servers_api.CreateServerRequest(request_id=slug, settings=settings)
        )
    return str(made.server.server_id)


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
            await create(gateway, slug, url)
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
        dead = [await enter(dead_server()) for _ in range(DEAD)]
        every = await enter(everything_server())
        # Time stands still, so that no pause is over.
        clock = FakeClock()
        gateway = await enter(
            mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8", clock=clock)
        )
        for number in range(SERVERS):
            url = dead[number].url if number < DEAD else every.url
            server_id = await create(gateway, f"server-{number}", url)
            # One after the other, and with time: the machine may be busy.
            with acting_for(MEMBER):
                await gateway.tools.ListServerTools(
                    tools_api.ListServerToolsRequest(server_id=server_id), timeout=60
                )
        tools = McpTools(
            Channels((gateway.settings.listen,), lambda _: gateway.chatd),
            clock,
            ResultFiles(KeptFiles()),
        )
        listed = await tools.list_tools(CONTEXT)
        reports = await tools.reports(CONTEXT)
        assert sum(bool(report.problem) for report in reports) == DEAD
        contacted = sum(server.connections for server in dead)
        assert contacted >= DEAD
        for _ in range(LISTINGS):
            tools.forget_catalogues()
            assert await tools.list_tools(CONTEXT) == listed
        assert sum(server.connections for server in dead) == contacted
