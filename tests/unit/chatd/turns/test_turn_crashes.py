"""A process that dies before or after any commit: another goes on, and nothing happens twice."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import RecordResult, RequestCompaction
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.domain.price import ModelUse
from chatd.models.domain.profile import ModelProfile
from chatd.turns.domain.turn import TurnSetup
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import SETUP, WORKER, Stage, calling, client_tool, tool

TWO_CALLS = (ToolCall("a", "one", "{}"), ToolCall("b", "two", "{}"))
SMALL = TurnSetup(ModelProfile("demo", context_limit_tokens=1000))


def plain() -> Stage:
    stage = Stage(lambda _: (TextDelta("hi"), Finished()))
    stage.send("one")
    stage.send("two")
    return stage


def with_tools() -> Stage:
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two", is_serial=True))
    stage.send()
    return stage


def with_refused_calls() -> Stage:
    stage = Stage(calling(*TWO_CALLS), tool("one", is_exclusive=True), tool("two"))
    stage.send()
    return stage


def with_client_tools() -> Stage:
    setup = replace(SETUP, client_tools=(client_tool("two"),))
    stage = Stage(calling(*TWO_CALLS), tool("one"), setup=setup)
    stage.send()
    return stage


def with_summaries() -> Stage:
    """A chat whose first steps fill the window and whose summaries empty it."""

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if not request.may_call_tools:
            yield TextDelta("a summary")
        elif any("handover" in str(message.content) for message in request.messages):
            yield TextDelta("from there")
            yield UsageReported(100, 10)
        else:
            yield ToolCallRequested(TWO_CALLS[0])
            yield UsageReported(800, 10)
        yield Finished()

    stage = Stage(play, tool("one"), setup=SMALL)
    stage.send()
    return stage


async def answer_as_client(stage: Stage) -> None:
    if stage.status == Status.REQUIRES_ACTION:
        stage.submit(ToolResult("b", "two", "{}", ToolOutcome.DONE))
        await stage.run()


def told(stage: Stage) -> list[object]:
    """Return the history without what differs between processes: derived ids and time."""
    ids = re.compile(r"chat_summarized_[0-9a-f-]+")
    return [
        (
            message.role,
            ids.sub("summary", repr(message.content)),
            message.is_compressed,
            message.visibility,
            message.use or ModelUse(),
        )
        for message in stage.messages
    ]


SCENES: tuple[Callable[[], Stage], ...] = (
    plain,
    with_tools,
    with_refused_calls,
    with_client_tools,
    with_summaries,
)


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_dying_at_any_commit_changes_nothing_in_the_end(
    scene: Callable[[], Stage], is_after: bool
) -> None:
    whole = scene()
    await whole.run()
    commits = len(whole.commits.commands)
    await answer_as_client(whole)
    for place in range(commits):
        stage = scene()
        if is_after:
            stage.commits.dies_after = place
        else:
            stage.commits.dies_before = place
        with pytest.raises(Crash):
            await stage.run()
        await stage.take_over()
        await answer_as_client(stage)
        assert told(stage) == told(whole)
        assert stage.status == whole.status == Status.WAITING
        assert set(stage.tools.starts.values()) <= {1}
    assert commits >= 2


@pytest.mark.parametrize("scene", [with_tools, with_client_tools], ids=lambda scene: scene.__name__)
async def test_dying_while_a_call_runs_attaches_to_it(scene: Callable[[], Stage]) -> None:
    whole, stage = scene(), scene()
    await whole.run()
    await answer_as_client(whole)
    stage.tools.crash_after_start = True
    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()
    await answer_as_client(stage)
    assert told(stage) == told(whole)
    assert set(stage.tools.starts.values()) == {1}


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_dying_at_the_end_of_an_interruption_stores_it_once(is_after: bool) -> None:
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two"), held={"two"})
    stage.commits.after = {RecordResult: stage.interrupt}
    # The step, the result of the first call, then the end of the interruption.
    if is_after:
        stage.commits.dies_after = 2
    else:
        stage.commits.dies_before = 2
    with pytest.raises(Crash):
        await stage.ask()
    await stage.take_over()
    results = [part for _, parts in stage.said for part in parts if isinstance(part, ToolResult)]
    assert [result.outcome for result in results] == [ToolOutcome.DONE, ToolOutcome.CANCELLED]
    assert stage.status == Status.WAITING
    assert set(stage.tools.starts.values()) == {1}


@pytest.mark.parametrize("place", range(3))
async def test_a_summary_by_hand_is_made_once_and_not_talked_about(place: int) -> None:
    stage = Stage(lambda _: (TextDelta("words"), Finished()))
    await stage.ask()
    stage.do(RequestCompaction(WORKER))
    stage.commits.commands.clear()
    stage.commits.dies_after = place if place < 2 else None
    if place < 2:
        with pytest.raises(Crash):
            await stage.run()
        await stage.take_over()
    else:
        await stage.run()
    assert [message.role for message in stage.messages] == [
        Role.USER,
        Role.ASSISTANT,
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
    ]
    assert stage.messages[1].content == (Text("words"),)
    assert stage.status == Status.WAITING


async def test_two_runners_of_one_chat_never_both_write() -> None:
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two"), held={"two"})
    stage.send()
    async with stage.running():
        await stage.tools.until_started(2)
        stage.tools.end("two")
        stage.chats.chats[stage.state.chat_id].state = replace(
            stage.state,
            snapshot_version=stage.state.snapshot_version + 1,
            owner_epoch=stage.state.owner_epoch + 1,
        )
    committed = [type(command).__name__ for command in stage.commits.commands]
    assert "CommitResults" not in committed
    await stage.take_over()
    assert stage.texts[-1] == ("assistant", "done")
    assert set(stage.tools.starts.values()) == {1}
