"""The search for tools over a workspace server with many of them."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import FIND_TOOLS, Execution, Executor, Outcome, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.tools.find_tools import SearchingTools
from chatd.tools.local import LocalTools
from chatd.turns.domain.tool_search import INLINE_TOOLS_MAX, index_of
from support.chatd.workspace_servers.server_calls import ServerCalls, server_calls
from support.toolrunner.node import House, node

BUILT_IN = ToolSpec("read_file", "Read a case.", "{}", Executor.TOOLRUNNER)


@dataclass(frozen=True, slots=True)
class OfWorkspace:
    """The tools of a workspace: its own, and those of its servers."""

    calls: ServerCalls

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        return (BUILT_IN, *(await self.calls.offered()).values())

    async def execute(self, execution: Execution) -> Outcome:
        raise AssertionError(execution)

    find = cancel = execute


@pytest.fixture
async def calls(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerCalls]:
    house = House.build(tmp_path_factory.mktemp("t"))
    async with asyncio.timeout(120), node(house), server_calls(house) as found:
        found.define_plain("many")
        await found.trust()
        yield found


async def search(calls: ServerCalls, **arguments: object) -> list[str]:
    """Search as a model does, and return the names that were found."""
    source: object = OfWorkspace(calls)
    searching = SearchingTools(LocalTools(()), source)  # type: ignore[arg-type]
    made = await calls.execution("ws_plain__echo")
    call = ToolCall("search", FIND_TOOLS, json.dumps(arguments))
    found = await searching.execute(replace(made, dispatch=replace(made.dispatch, call=call)))
    assert isinstance(found, Outcome)
    assert found.outcome is ToolOutcome.DONE
    return [tool["name"] for tool in json.loads(found.result_json)["tools"]]


async def test_many_tools_of_a_workspace_server_are_searched_found_and_called(
    calls: ServerCalls,
) -> None:
    specs = await calls.offered()
    assert len(specs) > INLINE_TOOLS_MAX
    index = index_of((BUILT_IN, *specs.values()), calls.servers.reports(calls.place.chat_id), 0)
    assert set(index.deferred) == set(specs)
    assert "ws_plain: " in index.spec().description
    assert (await search(calls, queries=["repeat"]))[0] == "ws_plain__echo"
    assert await search(calls, queries=["ws_plain: case 7"], names=["ws_plain__case_7"])
    assert (await search(calls, names=["ws_plain__case_7", "read_file"])) == ["ws_plain__case_7"]
    outcome, result = await calls.call("ws_plain__case_7", text="called")
    assert (outcome, result["content"]) == (
        ToolOutcome.DONE,
        [{"type": "text", "text": "called"}],
    )
