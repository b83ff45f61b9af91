"""Five hundred tools on twenty servers: listed, found, and still there without their servers."""

import json
from pathlib import Path

import pytest

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import FIND_TOOLS, Outcome, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.tools.find_tools import SearchingTools
from chatd.tools.mcpgateway import McpTools
from chatd.turns.domain.tool_search import SHARE_OF_CONTEXT, index_of, tokens_of
from mcpgateway.runtime.catalogues import TTL_S
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.clock import FakeClock
from parley.rpc import acting_for
from support.host.ports import free_port
from support.mcpgateway.gateway import MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.team_server import TOOLS, team_server
from support.mcpgateway.turn_tools import CONTEXT, add_server, execution_of, tools_at

pytestmark = pytest.mark.slow

SERVERS = 20
CONTEXT_LIMIT_TOKENS = 200_000
RIGHT = "team-7__create_issue_7"


class NoTools:
    """No other tools."""

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        return ()


async def create(gateway: McpGateway, slug: str, url: str) -> None:
    """Add a server, and have its tools listed for the user of the turn."""
    server_id = await add_server(
        gateway,
        slug,
        url,
        availability=server_pb2.AVAILABILITY_FORCE_ON,
        approval_policy=server_pb2.APPROVAL_POLICY_NEVER,
    )
    # One after the other, and with time: the machine may be busy.
    with acting_for(MEMBER):
        await gateway.tools.ListServerTools(
            tools_api.ListServerToolsRequest(server_id=server_id), timeout=60
        )


async def found_by_search(tools: McpTools, specs: tuple[ToolSpec, ...]) -> list[str]:
    """Search as a model does, and return the names that it is given."""
    index = index_of(specs, await tools.reports(CONTEXT), CONTEXT_LIMIT_TOKENS)
    assert len(index.deferred) == SERVERS * TOOLS
    offered = index.offered(specs, ())
    # Of five hundred definitions the prompt has none, and the search has its own bounds.
    assert [spec.name for spec in offered] == [FIND_TOOLS]
    assert sum(map(tokens_of, offered)) <= CONTEXT_LIMIT_TOKENS // SHARE_OF_CONTEXT
    searching = SearchingTools(NoTools(), tools)  # type: ignore[arg-type]
    execution = execution_of(
        index.spec(), {"queries": ["team-7: create issue in project 7"]}, "search"
    )
    outcome = await searching.execute(execution)
    assert isinstance(outcome, Outcome)
    assert outcome.outcome is ToolOutcome.DONE
    return [tool["name"] for tool in json.loads(outcome.result_json)["tools"]]


async def test_five_hundred_tools_are_listed_found_and_called_with_and_without_their_servers(
    tmp_path: Path, mcp_database: str
) -> None:
    port, clock = free_port(), FakeClock()
    async with mcp_gateway(tmp_path, mcp_database, allowed="127.0.0.0/8", clock=clock) as gateway:
        tools = tools_at(gateway, clock=clock)
        async with team_server(port) as url:
            for number in range(SERVERS):
                await create(gateway, f"team-{number}", url)
            specs = await tools.list_tools(CONTEXT)
            assert len({spec.name for spec in specs}) == len(specs) == SERVERS * TOOLS
            assert RIGHT in (await found_by_search(tools, specs))[:3]
            right = next(spec for spec in specs if spec.name == RIGHT)
            called = await tools.execute(execution_of(right, {"title": "a"}, "e1"))
            assert isinstance(called, Outcome)
            assert called.outcome is ToolOutcome.DONE
        # All servers are gone, and all that is known of them is old.
        clock.advance(TTL_S + 1)
        tools.forget_catalogues()
        again = await tools.list_tools(CONTEXT)
        assert {spec.name for spec in again} == {spec.name for spec in specs}
        assert all(report.problem for report in await tools.reports(CONTEXT))
        assert RIGHT in (await found_by_search(tools, again))[:3]
        told = []
        for number in range(6):
            failed = await tools.execute(execution_of(right, {"title": "a"}, f"down-{number}"))
            assert isinstance(failed, Outcome)
            told.append(failed.result_json)
        assert "cannot be reached" in told[0]
        assert "failed repeatedly and is left alone" in told[-1]
        async with team_server(port):
            clock.advance(300)
            recovered = await tools.execute(execution_of(right, {"title": "a"}, "back"))
            assert isinstance(recovered, Outcome)
            assert recovered.outcome is ToolOutcome.DONE
