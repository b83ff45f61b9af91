"""Tools of a turn: side by side, one at a time, alone, lost and found."""

import json
from dataclasses import replace

import pytest

from chatd.chats.domain.commands import CommitResults, CommitStep, RecordResult
from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import File, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import UNKNOWN_OUTCOME, Outcome
from chatd.models.domain.profile import ModelProfile
from chatd.turns.domain.turn import TurnSetup
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import CHAT, Stage, calling, live_parts, tool

A, B, C = (ToolCall(name, name, "{}") for name in "abc")


def results(stage: Stage) -> dict[str, ToolResult]:
    return {
        part.tool_call_id: part
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolResult)
    }


def outcomes(stage: Stage) -> dict[str, ToolOutcome]:
    return {call_id: result.outcome for call_id, result in results(stage).items()}


async def test_results_are_recorded_as_they_come_and_committed_in_the_order_of_the_calls() -> None:
    stage = Stage(calling(A, B, C), tool("a"), tool("b"), tool("c"), held={"a", "b", "c"})
    stage.send()
    with stage.watch() as watcher:
        async with stage.running():
            await live_parts(watcher, 3)
            await stage.tools.until_started(3)
            for name in "cab":
                stage.tools.end(name)
                (shown,) = await live_parts(watcher, 1)
                assert isinstance(shown.part, ToolResult)
                assert (shown.part.tool_call_id, shown.part_index) == (name, "abc".index(name))
    commands = stage.commits.commands
    recorded = [each.result.tool_call_id for each in commands if isinstance(each, RecordResult)]
    # The last one is stored by the write that puts all of them into the history.
    assert recorded == ["c", "a"]
    assert sum(isinstance(command, CommitResults) for command in commands) == 1
    assert list(results(stage)) == ["a", "b", "c"]


async def test_files_that_a_call_hands_over_are_shown_and_kept_and_the_model_reads_the_json() -> (
    None
):
    stage = Stage(calling(A), tool("a"))
    report = File("f1", "text/markdown", "report.md")
    stage.tools.answers["a"] = Outcome(ToolOutcome.DONE, '{"file_id": "f1"}', (report,))
    with stage.watch() as watcher:
        await stage.ask()
        shown = [each.part for each in await live_parts(watcher, 2)]
    result = results(stage)["a"]
    assert result.files == (report,)
    assert shown[-1] == result
    asked = stage.model.requests[-1].messages[-1]
    assert [type(part) for part in asked.content] == [ToolResult]


@pytest.mark.parametrize(("moves_tools", "offers"), [(False, 1), (True, 2)])
async def test_after_a_tool_that_moves_the_others_they_are_offered_anew(
    moves_tools: bool, offers: int
) -> None:
    stage = Stage(calling(A), replace(tool("a"), moves_tools=moves_tools))
    await stage.ask()
    assert stage.tools.offers == offers


async def test_a_call_and_its_result_name_the_server_of_the_tool_in_stored_and_live_parts() -> None:
    of_server = replace(tool("a"), server_id="server")
    stage = Stage(calling(A, B), of_server, tool("b"))
    with stage.watch() as watcher:
        await stage.ask()
        live = [each.part for each in await live_parts(watcher, 4)]
    stored = [part for message in stage.messages for part in message.content]
    for parts in (live, stored):
        named = {
            (type(part), part.tool_name): part.mcp_server_id
            for part in parts
            if isinstance(part, ToolCall | ToolResult)
        }
        assert named == {
            (ToolCall, "a"): "server",
            (ToolResult, "a"): "server",
            (ToolCall, "b"): "",
            (ToolResult, "b"): "",
        }


async def test_serial_tools_run_after_the_others_one_at_a_time() -> None:
    specs = (tool("a", is_serial=True), tool("b"), tool("c", is_serial=True))
    stage = Stage(calling(A, B, C), *specs, held={"a", "b", "c"})
    stage.send()
    async with stage.running():
        for place, name in enumerate("bac", start=1):
            await stage.tools.until_started(place)
            assert len(stage.tools.order) == place
            stage.tools.end(name)
    assert stage.tools.order == ["b", "a", "c"]
    assert list(results(stage)) == ["a", "b", "c"]


async def test_an_exclusive_tool_alone_runs() -> None:
    search = ToolCall("s", "web_search", "{}", provider_executed=True)
    stage = Stage(calling(search, A), tool("a", is_exclusive=True))
    await stage.ask()
    assert outcomes(stage) == {"a": ToolOutcome.DONE}


async def test_an_exclusive_tool_in_a_batch_stops_the_whole_batch() -> None:
    stage = Stage(calling(A, B), tool("a", is_exclusive=True), tool("b"))
    await stage.ask()
    assert stage.tools.order == []
    assert outcomes(stage) == {"a": ToolOutcome.FAILED, "b": ToolOutcome.FAILED}
    assert "only call" in results(stage)["a"].result_json
    assert "skipped" in results(stage)["b"].result_json
    assert stage.texts[-1] == ("assistant", "done")


async def test_a_tool_that_crashes_is_an_error_result_and_its_siblings_are_not_affected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(calling(A, B), tool("a"), tool("b"))
    stage.tools.answers["a"] = ZeroDivisionError()
    await stage.ask()
    assert outcomes(stage) == {"a": ToolOutcome.FAILED, "b": ToolOutcome.DONE}
    told = json.loads(results(stage)["a"].result_json)
    assert "ZeroDivisionError" in told["error"]
    (logged,) = [record for record in caplog.records if record.message == "a tool crashed"]
    assert logged.exc_info is not None
    assert vars(logged)["execution_id"] == told["incident"]


async def test_output_that_is_not_json_is_wrapped_and_a_large_one_is_cut() -> None:
    setup = TurnSetup(ModelProfile("demo", context_limit_tokens=1000))
    stage = Stage(calling(A, B), tool("a"), tool("b"), setup=setup)
    stage.tools.answers["a"] = Outcome(ToolOutcome.DONE, "plain words")
    stage.tools.answers["b"] = Outcome(ToolOutcome.DONE, json.dumps({"output": "x" * 100_000}))
    await stage.ask()
    assert results(stage)["a"].result_json == '{"output": "plain words"}'
    cut = results(stage)["b"].result_json
    assert 16_000 < len(cut) <= 16 * 1024
    assert "bytes were left out" in json.loads(cut)["output"]


async def test_results_and_their_calls_reach_the_model_together() -> None:
    stage = Stage(calling(A, B), tool("a"), tool("b"))
    await stage.ask()
    asked, told = stage.model.requests[-1].messages[-2:]
    assert asked.role is Role.ASSISTANT
    assert told == PromptMessage(Role.TOOL, tuple(results(stage).values()))


async def test_an_answer_that_got_lost_is_found_again() -> None:
    stage = Stage(calling(A), tool("a"))
    stage.tools.loses_answers = True
    await stage.ask()
    assert outcomes(stage) == {"a": ToolOutcome.DONE}
    assert list(stage.tools.starts.values()) == [1]


async def test_an_executor_that_stays_away_makes_its_calls_unknown() -> None:
    stage = Stage(calling(A), tool("a"))
    stage.tools.is_reachable = False
    stage.send()
    async with stage.running():
        for wait_s in (0.5, 1, 2, 4, *[8] * 7):
            assert await stage.clock.until_sleeping(2) == wait_s
            stage.clock.advance(wait_s)
    result = results(stage)["a"]
    assert (result.outcome, result.result_json) == (
        ToolOutcome.UNKNOWN,
        UNKNOWN_OUTCOME.result_json,
    )


async def test_an_executor_that_comes_back_in_time_starts_the_call_once() -> None:
    stage = Stage(calling(A), tool("a"))
    stage.tools.is_reachable = False
    stage.send()
    async with stage.running():
        await stage.clock.until_sleeping(2)
        stage.tools.is_reachable = True
        stage.clock.advance(1)
    assert outcomes(stage) == {"a": ToolOutcome.DONE}
    assert list(stage.tools.starts.values()) == [1]


async def test_a_lost_journal_makes_the_calls_of_a_dead_owner_unknown() -> None:
    stage = Stage(calling(A), tool("a"))
    stage.tools.crash_after_start = True
    stage.send()
    with pytest.raises(Crash):
        await stage.run()
    stage.tools.forget_journal()
    await stage.take_over()
    assert outcomes(stage) == {"a": ToolOutcome.UNKNOWN}
    assert list(stage.tools.starts.values()) == [1]


async def test_a_call_that_never_left_is_not_started_when_its_tool_is_gone() -> None:
    stage = Stage(calling(A), tool("a"))
    stage.commits.dies_after = 0
    with pytest.raises(Crash):
        await stage.ask()
    stage.tools.specs = ()
    await stage.take_over()
    assert outcomes(stage) == {"a": ToolOutcome.FAILED}
    assert stage.tools.order == []


async def test_a_call_whose_dispatch_is_not_stored_is_unknown() -> None:
    stage = Stage(calling(A), tool("a"))
    stage.commits.dies_after = 0
    with pytest.raises(Crash):
        await stage.ask()
    stage.chats.chats[CHAT].dispatches.clear()
    await stage.take_over()
    assert outcomes(stage) == {"a": ToolOutcome.UNKNOWN}
    assert stage.tools.order == []


async def test_without_a_good_lease_nothing_is_sent() -> None:
    stage = Stage(calling(A), tool("a"))

    def lose_lease() -> None:
        stage.may_act = False

    stage.commits.after = {CommitStep: lose_lease}
    with pytest.raises(FenceLost):
        await stage.ask()
    assert stage.tools.order == []
    stage.may_act = True
    await stage.take_over()
    assert outcomes(stage) == {"a": ToolOutcome.DONE}


async def test_a_tool_that_meets_another_owner_ends_the_run_and_is_no_crash(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(calling(A), tool("a"))
    stage.tools.answers["a"] = FenceLost(CHAT)
    with pytest.raises(FenceLost):
        await stage.ask()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_without_a_good_lease_no_model_is_asked() -> None:
    stage = Stage(calling())
    stage.may_act = False
    with pytest.raises(FenceLost):
        await stage.ask()
    assert stage.model.requests == []


async def test_a_call_that_never_ends_is_given_up_at_last() -> None:
    stage = Stage(calling(A), tool("a"), held={"a"})
    stage.send()
    async with stage.running():
        await stage.tools.until_started(1)
        assert await stage.clock.until_sleeping() == 7200
        stage.clock.advance(7200)
    assert outcomes(stage) == {"a": ToolOutcome.UNKNOWN}
