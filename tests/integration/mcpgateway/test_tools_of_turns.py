"""The tools that turns are offered: what servers announced, what grew old, and who fails."""

import asyncio
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from chatd.content.domain.turn_context import TurnContext
from mcpgateway.runtime.catalogues import TTL_S
from parley.api.mcp.v1 import error_reason_pb2, server_pb2
from parley.api.mcp.v1 import server_service_pb2 as servers_api
from parley.clock import FakeClock
from parley.postgres import Database
from parley.rpc import acting_for
from support.host.ports import free_port
from support.mcpgateway.everything_server import everything_server
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.restrictions import restrict
from support.mcpgateway.server_calls import called
from support.mcpgateway.servers import kind_process, raw_server, until_listening
from support.mcpgateway.session_calls import KINDS, place_of
from support.mcpgateway.turn_tools import CONTEXT, add_server, tools_at


async def names_of_next_turn(gateway: McpGateway, context: TurnContext = CONTEXT) -> set[str]:
    """Return the tools that the next turn of a chat is offered."""
    return {spec.name for spec in await tools_at(gateway).list_tools(context)}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_of_each_kind_that_announces_other_tools_is_asked_again(
    tmp_path: Path, mcp_database: str, kind: str
) -> None:
    port = free_port()
    transport = server_pb2.TRANSPORT_SSE if kind == "sse" else server_pb2.TRANSPORT_STREAMABLE_HTTP
    with kind_process(port, kind):
        await until_listening(port)
        async with (
            asyncio.timeout(60),
            # Time stands still, so that no listing grows old by itself.
            mcp_gateway(
                tmp_path, mcp_database, allowed="127.0.0.0/8", clock=FakeClock()
            ) as gateway,
        ):
            url, _ = place_of(kind, port)
            server_id = await add_server(gateway, "well", url, transport=transport)
            names = await names_of_next_turn(gateway)
            assert ("well__grow" in names, "well__grown" in names) == (True, False)
            for number in count():
                # What is announced before anybody listens is not heard.
                await called(gateway, MEMBER, server_id, "grow", f"grow-{number}")
                if "well__grown" in await names_of_next_turn(gateway):
                    break


async def test_a_server_that_announces_nothing_is_asked_again_after_a_while(
    tmp_path: Path, mcp_database: str
) -> None:
    clock = FakeClock()
    async with (
        everything_server() as every,
        mcp_gateway(tmp_path, mcp_database, allowed=every.place, clock=clock) as gateway,
    ):
        await add_server(gateway, "well", every.url)
        assert "well__silent" not in await names_of_next_turn(gateway)
        every.server.add_tool(lambda: "", name="silent", description="New.")
        assert "well__silent" not in await names_of_next_turn(gateway)
        clock.advance(TTL_S + 1)
        async with asyncio.timeout(30):
            while "well__silent" not in await names_of_next_turn(gateway):
                pass


async def test_a_turn_has_the_tools_of_a_healthy_server_beside_one_refused_and_one_silent(
    tmp_path: Path, mcp_database: str
) -> None:
    refused, silent = free_port(), free_port()
    async with everything_server() as every, raw_server(silent, lambda _: b""):
        allowed = "127.0.0.0/8"
        async with mcp_gateway(tmp_path, mcp_database, allowed=allowed) as gateway:
            await add_server(gateway, "healthy", every.url)
            await add_server(gateway, "refused", f"http://127.0.0.1:{refused}/mcp")
            limits = server_pb2.McpServerLimits(connect_timeout_ms=2_000)
            await add_server(gateway, "silent", f"http://127.0.0.1:{silent}/mcp", limits=limits)
            tools = tools_at(gateway)
            async with asyncio.timeout(10):
                names = {spec.name for spec in await tools.list_tools(CONTEXT)}
            reports = await tools.reports(CONTEXT)
    assert {name.partition("__")[0] for name in names} == {"healthy"}
    assert "healthy__echo" in names
    problems = {report.slug: report.problem for report in reports}
    assert (problems["healthy"], set(problems)) == ("", {"healthy", "refused", "silent"})
    assert "cannot be reached" in problems["refused"]
    assert "did not answer within 2000 ms" in problems["silent"]


async def test_the_health_of_servers_is_stored_with_a_reason_that_administrators_read(
    tmp_path: Path, mcp_database: str
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8") as gateway:
        async with everything_server(port):
            await add_server(gateway, "every", url)
            await add_server(gateway, "absent", f"http://127.0.0.1:{free_port()}/mcp")
            await tools_at(gateway).list_tools(CONTEXT)
        with acting_for(ADMIN):
            read = await gateway.servers.ListServers(servers_api.ListServersRequest())
    health = {each.settings.slug: each.health for each in read.servers}
    well, absent = health["every"], health["absent"]
    assert (well.state, well.reason, well.tool_count) == (
        server_pb2.SERVER_STATE_READY,
        error_reason_pb2.ERROR_REASON_UNSPECIFIED,
        5,
    )
    assert (absent.state, absent.reason) == (
        server_pb2.SERVER_STATE_UNAVAILABLE,
        error_reason_pb2.ERROR_REASON_CONNECT_FAILED,
    )
    assert "cannot be reached" in absent.detail
    assert (absent.HasField("last_ok_at"), absent.HasField("last_error_at")) == (False, True)


async def test_a_stored_address_that_cannot_be_read_hides_no_other_server(
    tmp_path: Path, mcp_database: str, database: Database
) -> None:
    async with (
        everything_server() as every,
        mcp_gateway(tmp_path, mcp_database, allowed=every.place) as gateway,
    ):
        await add_server(gateway, "healthy", every.url)
        await add_server(gateway, "unreadable", "https://a.example/mcp")
        # As one that was stored before addresses were checked like this.
        await database.pool.execute(
            "UPDATE mcp.servers SET url = 'https://0177.0.0.1/mcp', version = version + 1 "
            "WHERE slug = 'unreadable'"
        )
        tools = tools_at(gateway)
        names = {spec.name for spec in await tools.list_tools(CONTEXT)}
        problems = {report.slug: report.problem for report in await tools.reports(CONTEXT)}
    assert "healthy__echo" in names
    assert (problems["healthy"], "its URL cannot be used" in problems["unreadable"]) == ("", True)


async def test_a_server_that_is_forced_later_is_in_the_next_turn_of_its_users(
    tmp_path: Path, mcp_database: str
) -> None:
    forced = server_pb2.AVAILABILITY_FORCE_ON
    chose_none = replace(CONTEXT, mcp_server_ids=())
    async with (
        everything_server() as every,
        mcp_gateway(tmp_path, mcp_database, allowed=every.place) as gateway,
    ):
        before = await names_of_next_turn(gateway, chose_none)
        of_others = await add_server(gateway, "others", every.url, availability=forced)
        await restrict(gateway, of_others, user_ids=[ADMIN.id])
        await add_server(gateway, "later", every.url, availability=forced)
        after = await names_of_next_turn(gateway, chose_none)

    assert before == set()
    assert {name.partition("__")[0] for name in after} == {"later"}
