"""Tools that lists of a server or the mode of a chat exclude are neither offered nor called."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Execution, Outcome
from chatd.tools.mcpgateway import McpTools
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.rpc import acting_for, problem_of
from support.mcpgateway.everything_server import EverythingServer, everything_server
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.server_calls import called
from support.mcpgateway.turn_tools import CONTEXT, add_server, execution_of, tools_at

#: A name that models are not offered as it is: lists have the server's own names.
DOTTED = "notes.add"
ALL = {"echo", "grow", "long_text", DOTTED, "picture", "whoami"}
LISTS: dict[str, tuple[dict[str, list[str]], set[str]]] = {
    "none": ({}, ALL),
    "allow": ({"tool_allow_list": ["echo", DOTTED]}, {"echo", DOTTED}),
    "deny": ({"tool_deny_list": ["whoami", DOTTED]}, ALL - {"whoami", DOTTED}),
    "both": ({"tool_allow_list": ["echo"], "tool_deny_list": ["whoami"]}, {"echo"}),
    # What models call it is not its name.
    "another name": ({"tool_deny_list": ["notes_add", "well__echo"]}, ALL),
}


@pytest.fixture
async def every() -> AsyncIterator[EverythingServer]:
    async with everything_server() as running:
        running.server.add_tool(lambda text: text, name=DOTTED, description="Add a note.")
        yield running


@pytest.fixture
async def gateway(
    tmp_path: Path, mcp_database: str, every: EverythingServer
) -> AsyncIterator[McpGateway]:
    async with mcp_gateway(tmp_path, mcp_database, allowed=every.place) as running:
        yield running


async def restrict_tools(gateway: McpGateway, server_id: str, lists: dict[str, list[str]]) -> None:
    request = api.UpdateServerRequest(
        request_id="lists",
        server_id=server_id,
        settings=server_pb2.McpServerSettings(**lists),  # type: ignore[arg-type]
    )
    request.update_mask.paths.extend(["tool_allow_list", "tool_deny_list"])
    with acting_for(ADMIN):
        await gateway.servers.UpdateServer(request)


async def refusal_of(calling: Any) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await calling
    return problem_of(caught.value).reason


async def result_of(tools: McpTools, execution: Execution) -> tuple[ToolOutcome, str]:
    outcome = await tools.execute(execution)
    assert isinstance(outcome, Outcome)
    return outcome.outcome, outcome.result_json


@pytest.mark.parametrize("name", LISTS)
async def test_the_lists_of_a_server_have_its_own_names_of_tools(
    gateway: McpGateway, every: EverythingServer, name: str
) -> None:
    lists, expected = LISTS[name]
    await add_server(gateway, "well", every.url, **lists)
    offered = {spec.original_name for spec in await tools_at(gateway).list_tools(CONTEXT)}
    assert offered == expected


async def test_an_excluded_tool_is_not_called_although_it_was_offered_before(
    gateway: McpGateway, every: EverythingServer
) -> None:
    server_id = await add_server(gateway, "well", every.url)
    tools = tools_at(gateway)
    specs = {spec.original_name: spec for spec in await tools.list_tools(CONTEXT)}
    await restrict_tools(gateway, server_id, {"tool_deny_list": ["whoami"]})
    by_model = await result_of(tools, execution_of(specs["whoami"], {}, "excluded"))
    by_person = await refusal_of(called(gateway, MEMBER, server_id, "whoami"))
    other = await result_of(tools, execution_of(specs["echo"], {"text": "a"}, "other"))

    assert (by_model[0], "TOOL_DENIED" in by_model[1]) == (ToolOutcome.FAILED, True)
    assert (by_person, other[0], every.seen) == ("TOOL_DENIED", ToolOutcome.DONE, [])


@pytest.mark.parametrize("mode", [ChatMode.PLAN, ChatMode.EXPLORE])
async def test_a_server_that_is_not_for_planning_is_not_called_by_a_chat_that_only_reads(
    gateway: McpGateway, every: EverythingServer, mode: ChatMode
) -> None:
    await add_server(gateway, "well", every.url)
    tools = tools_at(gateway)
    specs = {spec.original_name: spec for spec in await tools.list_tools(CONTEXT)}
    execution = execution_of(specs["whoami"], {})
    planned = replace(execution, dispatch=replace(execution.dispatch, mode=mode))
    outcome, result = await result_of(tools, planned)

    assert await tools.list_tools(replace(CONTEXT, mode=mode)) == ()
    assert (outcome, "PLAN_MODE_DENIED" in result, every.seen) == (ToolOutcome.FAILED, True, [])
