"""The servers that a chat chooses, as chatd asks mcpgateway about them."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from chatd.bus_handlers import follow_servers
from chatd.chats.domain.references import NO_SUCH_SERVER, SERVER_DISABLED, McpServers
from chatd.content.domain.parts import CallProgress, ToolOutcome
from chatd.content.domain.tools import Outcome
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import CheckUnavailable
from chatd.tools.mcp_results import ResultFiles
from chatd.tools.mcpgateway import McpTools
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as servers_api
from parley.bus import PostgresBus
from parley.clock import FakeClock, SystemClock
from parley.identity import ServiceName, Signer, SigningKey
from parley.rpc import Address, Channels, acting_for, connect
from parley.telemetry import InMemoryTelemetry
from support.chatd.chats.known_servers import KnownServers
from support.chatd.tools.kept_files import KeptFiles
from support.chatd.workspaces.recorded_progress import Reports
from support.host.ports import free_port
from support.host.supervised import supervision
from support.mcpgateway.everything_server import everything_server
from support.mcpgateway.gateway import ADMIN, McpGateway, mcp_gateway
from support.mcpgateway.servers import session_process, until_listening
from support.mcpgateway.turn_tools import CHAT, OWNER, add_server, execution_of, tools_at

NOWHERE = "01900000-0000-7000-8000-0000000000ff"


async def created(gateway: McpGateway, slug: str, url: str, *, is_enabled: bool = True) -> str:
    """Add a server that only chats use which choose it; return its id."""
    off = server_pb2.AVAILABILITY_DEFAULT_OFF
    return await add_server(gateway, slug, url, availability=off, is_enabled=is_enabled)


@pytest.fixture(params=["mcpgateway", "known"])
async def known(request: pytest.FixtureRequest, gateway: McpGateway) -> tuple[McpServers, str, str]:
    """Servers, the id of one that is switched on, and of one that is switched off."""
    url = "https://mcp.example/mcp"
    on = await created(gateway, "on", url)
    off = await created(gateway, "off", url, is_enabled=False)
    if request.param == "known":
        return KnownServers([on], [off]), on, off
    return tools_at(gateway), on, off


async def test_only_servers_that_are_there_and_switched_on_can_be_chosen(
    known: tuple[McpServers, str, str],
) -> None:
    servers, on, off = known
    assert await servers.refused(CHAT, OWNER, [on, off, NOWHERE], ()) == {
        off: SERVER_DISABLED,
        NOWHERE: NO_SUCH_SERVER,
    }
    assert await servers.refused(CHAT, OWNER, [on, off, NOWHERE], [off, NOWHERE]) == {}
    assert await servers.refused(CHAT, OWNER, [on], ()) == {}


async def test_an_answer_is_used_until_servers_change(gateway: McpGateway) -> None:
    server_id = await created(gateway, "one", "https://mcp.example/mcp")
    tools = tools_at(gateway)
    assert await tools.refused(CHAT, OWNER, [server_id], ()) == {}
    with acting_for(ADMIN):
        await gateway.servers.DeleteServer(
            servers_api.DeleteServerRequest(request_id="d", server_id=server_id)
        )
    assert await tools.refused(CHAT, OWNER, [server_id], ()) == {}
    tools.forget_catalogues()
    assert await tools.refused(CHAT, OWNER, [server_id], ()) == {server_id: NO_SUCH_SERVER}


async def test_a_server_that_is_deleted_is_used_by_no_turn_after_the_notice(
    tmp_path: Path, mcp_database: str
) -> None:
    async with (
        asyncio.timeout(60),
        everything_server() as every,
        mcp_gateway(tmp_path, mcp_database, allowed=every.place) as gateway,
        PostgresBus.open(mcp_database, application_name="chatd", supervision=supervision()) as bus,
        asyncio.TaskGroup() as group,
    ):
        server_id = await created(gateway, "well", every.url)
        # Its clock stands still, so that what is known of servers does not grow old.
        tools = tools_at(gateway)
        following = group.create_task(follow_servers(bus, tools))
        # A chat keeps the ids that it chose.
        context = TurnContext(CHAT, OWNER, mcp_server_ids=(server_id,))
        specs = {spec.name: spec for spec in await tools.list_tools(context)}
        with acting_for(ADMIN):
            await gateway.servers.DeleteServer(
                servers_api.DeleteServerRequest(request_id="d", server_id=server_id)
            )
        while await tools.list_tools(context):
            pass
        late = await tools.execute(execution_of(specs["well__whoami"], {}, context=context))
        following.cancel()

    assert isinstance(late, Outcome)
    assert (late.outcome, "SERVER_NOT_FOUND" in late.result_json, every.seen) == (
        ToolOutcome.FAILED,
        True,
        [],
    )


async def test_no_answer_is_no_permission(tmp_path: Path) -> None:
    telemetry = InMemoryTelemetry("chatd").telemetry
    signer = Signer(ServiceName.CHATD, SigningKey.generate(), SystemClock())
    channels = Channels(
        (Address.parse(f"unix:{tmp_path}/nothing.sock"),),
        lambda address: connect(
            address, audience=ServiceName.MCPGATEWAY, signer=signer, telemetry=telemetry
        ),
    )
    tools = McpTools(channels, FakeClock(), ResultFiles(KeptFiles()))
    try:
        with pytest.raises(CheckUnavailable):
            await tools.refused(CHAT, OWNER, [NOWHERE], ())
    finally:
        await channels.close()


async def test_a_chat_is_offered_the_tools_of_the_servers_that_it_chose(
    gateway: McpGateway, demo_url: str
) -> None:
    tools = tools_at(gateway)
    context = TurnContext(CHAT, OWNER)
    everybodys = {spec.name for spec in await tools.list_tools(context)}
    server_id = await created(gateway, "clock", demo_url)
    tools.forget_catalogues()
    assert {spec.name for spec in await tools.list_tools(context)} == everybodys
    choosing = replace(context, mcp_server_ids=(server_id, NOWHERE))
    offered = {spec.name for spec in await tools.list_tools(choosing)} - everybodys
    assert offered
    assert all(name.startswith("clock__") for name in offered)


async def test_the_progress_of_a_call_is_reported_while_it_runs(
    tmp_path: Path, mcp_database: str
) -> None:
    reports, port = Reports(), free_port()
    place = f"127.0.0.1:{port}"
    with session_process(port, "mcp"):
        await until_listening(port)
        async with (
            asyncio.timeout(60),
            mcp_gateway(tmp_path, mcp_database, allowed=place) as gateway,
            asyncio.TaskGroup() as group,
        ):
            server_id = await created(gateway, "slow", f"http://{place}/mcp")
            tools = tools_at(gateway)
            context = TurnContext(CHAT, OWNER, mcp_server_ids=(server_id,), progress=reports)
            specs = {spec.name: spec for spec in await tools.list_tools(context)}
            spec = specs["slow__wait"]
            execution = execution_of(spec, {}, context=context)
            calling = group.create_task(tools.execute(execution))
            assert await reports.news.get() == CallProgress(1.0, 2.0, "half")
            assert not calling.done()
            await tools.cancel(execution)
    ended = calling.result()
    assert isinstance(ended, Outcome)
    assert ended.outcome is ToolOutcome.CANCELLED
    assert reports.updates == [CallProgress(1.0, 2.0, "half")]
