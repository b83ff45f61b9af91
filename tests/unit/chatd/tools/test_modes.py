"""Modes in which nothing is changed: which tools are offered, and why others are refused."""

import json
from dataclasses import replace
from typing import cast

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall, ToolResult
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId
from chatd.tools import lifecycle
from chatd.tools.lifecycle import LifecycleTools
from chatd.tools.lifecycle.control import Control
from chatd.tools.workspace import toolset
from chatd.turns.domain.calls import CallPlan, error_result, plan_calls, withheld_tools
from support.chatd.turns.fixed_setups import FixedSetups
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import ANN, CHAT, SETUP, Stage, calling, client_tool, tool

SPECS = tuple(each.spec("g") for each in toolset.TOOLS.values())
READING = {"execute", "find_files", "list_files", "process_output", "read_file", "search_files"}
PARENT = (ChatId("00000000-0000-0000-0000-000000000002"),)


@pytest.mark.parametrize(
    ("mode", "is_child", "names"),
    [
        (ChatMode.ORDINARY, False, {*toolset.TOOLS}),
        (ChatMode.ORDINARY, True, {*toolset.TOOLS}),
        (ChatMode.PLAN, False, READING | {"attach_file"}),
        (ChatMode.PLAN, True, READING),
        (ChatMode.EXPLORE, True, READING),
    ],
)
def test_the_tools_of_a_workspace_follow_the_mode(
    mode: ChatMode, is_child: bool, names: set[str]
) -> None:
    context = TurnContext(CHAT, ANN, mode=mode, ancestor_ids=PARENT if is_child else ())
    offered = {spec.name: spec for spec in toolset.offered(SPECS, context)}
    assert {*offered} == names
    assert ("read-only" in offered["execute"].description) is (mode is not ChatMode.ORDINARY)


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        (ChatMode.ORDINARY, {*lifecycle.TOOLS}),
        (
            ChatMode.PLAN,
            {"list_templates", "read_template", "create_workspace", "start_workspace"},
        ),
        (ChatMode.EXPLORE, set()),
    ],
)
async def test_the_tools_for_workspaces_follow_the_mode(mode: ChatMode, names: set[str]) -> None:
    offered = await LifecycleTools(cast(Control, None)).list_tools(
        TurnContext(CHAT, ANN, mode=mode)
    )
    assert {spec.name for spec in offered} == names


@pytest.mark.parametrize("mode", ChatMode)
async def test_agents_have_no_tools_for_workspaces(mode: ChatMode) -> None:
    child = TurnContext(CHAT, ANN, mode=mode, ancestor_ids=PARENT)
    assert await LifecycleTools(cast(Control, None)).list_tools(child) == ()


def test_a_tool_that_the_mode_forbids_is_refused_with_the_mode_as_the_reason() -> None:
    look = tool("execute")
    withheld = withheld_tools(ChatMode.PLAN, (look,), (client_tool("open_page"),))
    calls = tuple(
        ToolCall(str(place), name, "{}")
        for place, name in enumerate(("execute", "write_file", "open_page", "writefile"))
    )
    plan = plan_calls(calls, {"execute": look}, withheld=withheld)
    assert plan.dispatched == (calls[0],)
    assert [json.loads(each.result_json)["error"] for each in plan.refused] == [
        "write_file cannot be called in plan mode, in which nothing is changed",
        "open_page cannot be called in plan mode, in which nothing is changed",
        "there is no tool writefile",
    ]


@pytest.mark.parametrize("mode", [ChatMode.ORDINARY, ChatMode.PLAN])
def test_tools_of_a_workspace_that_is_away_are_said_to_be_away_and_not_to_be_none(
    mode: ChatMode,
) -> None:
    other = ToolSpec("wiki__search", "", "{}", Executor.MCPGATEWAY)
    call = ToolCall("a", "execute", '{"command": "ls"}')
    plan = plan_calls((call,), {other.name: other}, withheld=withheld_tools(mode, (other,), ()))
    assert plan == CallPlan(
        refused=(
            error_result(
                call,
                "execute cannot be called now, because the workspace does not answer",
                "Try again in a moment, or go on without it and say so.",
            ),
        )
    )


def test_an_ordinary_turn_withholds_nothing() -> None:
    assert withheld_tools(ChatMode.ORDINARY, (), (client_tool("open_page"),)) == {}


@pytest.mark.parametrize("mode", [ChatMode.PLAN, ChatMode.EXPLORE])
async def test_tools_of_a_client_are_absent_where_nothing_is_changed(mode: ChatMode) -> None:
    setup = replace(SETUP, mode=mode, client_tools=(client_tool("open_page"),))
    stage = Stage(calling(ToolCall("a", "open_page", "{}")), tool("look"), setup=setup)
    await stage.ask()
    [result] = [
        part
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolResult)
    ]
    error = f"open_page cannot be called in {mode.value} mode, in which nothing is changed"
    assert json.loads(result.result_json)["error"] == error
    assert "open_page" not in {spec.name for spec in stage.model.requests[0].tools}


async def test_a_call_keeps_the_mode_of_its_turn_when_another_process_takes_it_over() -> None:
    setup = replace(SETUP, mode=ChatMode.PLAN)
    stage = Stage(calling(ToolCall("a", "look", "{}")), tool("look"), setup=setup)
    stage.commits.dies_after = 0
    with pytest.raises(Crash):
        await stage.ask()
    # Meanwhile the chat left the mode.
    stage.setups = FixedSetups(SETUP)
    await stage.take_over()
    assert (stage.tools.order, stage.tools.modes) == (["look"], [ChatMode.PLAN])


async def test_a_dispatched_call_runs_though_its_workspace_was_away_for_a_moment() -> None:
    stage = Stage(calling(ToolCall("a", "execute", "{}")), tool("execute"))
    stage.commits.dies_after = 0
    with pytest.raises(Crash):
        await stage.ask()
    stage.tools.specs = ()
    await stage.take_over()
    assert stage.tools.order == ["execute"]


async def test_a_dispatched_call_whose_mode_is_over_does_not_run_after_such_a_moment() -> None:
    stage = Stage(calling(ToolCall("a", "execute", "{}")), tool("execute"))
    stage.commits.dies_after = 0
    with pytest.raises(Crash):
        await stage.ask()
    stage.tools.specs = ()
    stage.setups = FixedSetups(replace(SETUP, mode=ChatMode.PLAN))
    await stage.take_over()
    assert stage.tools.order == []


async def test_a_call_that_was_not_started_does_not_run_in_a_stricter_mode() -> None:
    stage = Stage(calling(ToolCall("a", "execute", "{}")), tool("execute"))
    stage.commits.dies_after = 0
    with pytest.raises(Crash):
        await stage.ask()
    stage.setups = FixedSetups(replace(SETUP, mode=ChatMode.PLAN))
    await stage.take_over()
    assert stage.tools.order == []


def test_a_disabled_advisor_is_not_told_as_withheld_by_plan_mode() -> None:
    assert "advisor" not in withheld_tools(ChatMode.PLAN, (), ())
    assert withheld_tools(ChatMode.EXPLORE, (), ())["advisor"] is ChatMode.EXPLORE
