"""Providers that pause an answer while they execute tools: asked to go on, but not for ever."""

from collections.abc import Iterable

import pytest

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import FinishReason
from chatd.content.domain.parts import Notice, Text, ToolCall, ToolOutcome, ToolResult
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    ProviderToolResult,
    TextDelta,
    ToolCallRequested,
)
from chatd.turns.domain.steps import PAUSES_MAX
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import Stage

SEARCH = ToolCall("s", "web_search", "{}", provider_executed=True)
FOUND = ToolResult("s", "web_search", "[]", ToolOutcome.DONE, provider_executed=True)
PAUSED = Finished(FinishReason.PAUSED)


def pausing(times: int) -> Stage:
    """Return a stage whose model pauses so often before it answers."""
    left = [times]

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if left[0]:
            left[0] -= 1
            return (ToolCallRequested(SEARCH), PAUSED)
        return (ProviderToolResult(FOUND), TextDelta("found it"), Finished())

    return Stage(play)


async def test_a_paused_answer_is_stored_and_gone_on_with() -> None:
    stage = pausing(2)
    await stage.ask()
    assert stage.texts == [
        ("user", "hello"),
        ("assistant", "ToolCall"),
        ("assistant", "ToolCall"),
        ("assistant", "ToolResult found it"),
    ]
    assert len(stage.model.requests) == 3
    last = stage.model.requests[-1].messages[-1].content[-1]
    assert isinstance(last, ToolCall)
    assert last.provider_executed
    assert stage.status is Status.WAITING


async def test_a_provider_that_only_pauses_is_not_asked_for_ever() -> None:
    stage = pausing(1000)
    await stage.ask()
    assert len(stage.model.requests) == PAUSES_MAX
    (notice,) = stage.messages[-1].content
    assert isinstance(notice, Notice)
    assert "Send a message to let it go on" in notice.text
    assert stage.status is Status.WAITING
    await stage.ask("go on")
    assert len(stage.model.requests) == 2 * PAUSES_MAX


async def test_an_answer_that_ends_with_a_search_and_was_not_paused_is_the_last() -> None:
    stage = Stage(lambda _: (ToolCallRequested(SEARCH), ProviderToolResult(FOUND), Finished()))
    await stage.ask()
    assert len(stage.model.requests) == 1
    assert stage.texts == [("user", "hello"), ("assistant", "ToolCall ToolResult")]


async def test_whoever_takes_over_goes_on_with_a_paused_answer() -> None:
    stage = pausing(1)
    stage.commits.dies_after = 0
    stage.send()
    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()
    assert stage.messages[-1].content[-1] == Text("found it")
    assert stage.status is Status.WAITING
