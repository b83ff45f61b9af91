"""The progress of running calls: live, at the place of its call, and never part of the history."""

import asyncio
import math

import pytest

from chatd.chats.domain.chat import PendingCall
from chatd.chats.domain.commands import CommitResults, CommitStep, FinishTurn
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import (
    CallProgress,
    StreamedPart,
    ToolCall,
    ToolResult,
    ToolResultDelta,
)
from chatd.content.domain.turn_context import CallProcess
from chatd.turns.engine.progress import LiveProgress
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import Stage, calling, live_parts, tool

A, B = (ToolCall(name, name, "{}") for name in "ab")


async def test_a_running_call_is_shown_and_its_result_is_the_last_part_of_it() -> None:
    stage = Stage(calling(A, B), tool("a"), tool("b"), held={"b"})
    progress = CallProgress(1.0, 2.0, "half")
    stage.tools.reports["b"] = (CallProcess("p1"), "com", "piled\n", progress)
    stage.send()
    with stage.watch() as watcher:
        async with stage.running():
            shown = await live_parts(watcher, 7)
            stage.tools.end("b")
            shown += await live_parts(watcher, 1)
    deltas = [each.part for each in shown if isinstance(each.part, ToolResultDelta)]
    assert deltas == [
        ToolResultDelta("b", "b", process_id="p1"),
        ToolResultDelta("b", "b", text="com"),
        ToolResultDelta("b", "b", text="piled\n"),
        ToolResultDelta("b", "b", progress=progress),
    ]
    of_b = [each for each in shown if getattr(each.part, "tool_call_id", "") == "b"]
    assert isinstance(of_b[-1].part, ToolResult)
    assert {(each.role, each.part_index) for each in of_b if each.role is Role.TOOL} == {
        (Role.TOOL, 1)
    }
    last = [part for message in stage.messages for part in message.content][-2]
    assert of_b[-1].part == last


async def test_progress_adds_no_commit_to_a_turn() -> None:
    stage = Stage(calling(A), tool("a"))
    stage.tools.reports["a"] = ("x" * 10_000, CallProcess("p1")) * 50
    await stage.ask()
    assert [type(command) for command in stage.commits.commands] == [
        CommitStep,
        CommitResults,
        FinishTurn,
    ]
    assert all(not isinstance(part, ToolResultDelta) for _, parts in stage.said for part in parts)


async def test_the_next_owner_shows_a_running_call_anew_in_an_episode_of_its_own() -> None:
    stage = Stage(calling(A), tool("a"), held={"a"})
    stage.tools.reports["a"] = (CallProcess("p1"), "building\n")
    stage.tools.crash_after_start = True
    stage.send()
    with stage.watch() as watcher:
        with pytest.raises(Crash):
            await stage.run()
        before = [watcher.get_nowait() for _ in range(watcher.qsize())][-2:]
        async with asyncio.TaskGroup() as group:
            group.create_task(stage.take_over())
            after = await live_parts(watcher, 2)
            stage.tools.end("a")
    told = [
        ToolResultDelta("a", "a", process_id="p1"),
        ToolResultDelta("a", "a", text="building\n"),
    ]
    # Another attempt is another episode: its readers are told to discard the first.
    assert [(each.generation_attempt, each.seq, each.part) for each in (*before, *after)] == [
        (1, 1, told[0]),
        (1, 2, told[1]),
        (2, 1, told[0]),
        (2, 2, told[1]),
    ]


def shown_by(*updates: str | CallProcess | CallProgress) -> list[StreamedPart]:
    shown: list[StreamedPart] = []
    pending = (PendingCall("a", "a"),)
    progress = LiveProgress(pending, lambda _role, _place, part: shown.append(part))
    for update in updates:
        progress.report("a", update)
        progress.report("of another step", update)
    progress.reset("of another step")
    return shown


def test_what_no_reader_could_be_sent_is_repaired_or_left_out() -> None:
    assert shown_by(
        "",
        "\ud800!",
        CallProgress(math.nan, 1.0),
        CallProgress(1.0, math.inf, "m" * 5000),
    ) == [
        ToolResultDelta("a", "a", text="\ufffd!"),
        ToolResultDelta("a", "a", progress=CallProgress(1.0, None, "m" * 1024)),
    ]
