"""Histories that fill the window: summarised in between, at the end, by hand, or not at all."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

import msgspec
import pytest

from chatd.chats.domain.chat import Message, Status
from chatd.chats.domain.commands import CommitCompaction, RequestCompaction
from chatd.chats.domain.errors import TransitionNotAllowed
from chatd.chats.domain.pieces import CHAT_SUMMARIZED
from chatd.content.domain.messages import ErrorKind, Role, Visibility
from chatd.content.domain.orders import AgentOrders
from chatd.content.domain.parts import ContextFile, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    ProviderToolResult,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.domain.profile import ModelProfile
from chatd.turns.domain.compaction import SUMMARY_PREFIX, SUMMARY_REQUEST
from chatd.turns.domain.system_prompt import SystemPrompt, blocks_of
from chatd.turns.domain.turn import TurnSetup
from support.chatd.turns.turn_stage import CHAT, WORKER, Stage, live_parts, tool

SMALL = TurnSetup(ModelProfile("demo", context_limit_tokens=1000))
CALL = ToolCall("c", "look", "{}")


def is_summary_wish(request: ModelRequest) -> bool:
    return request.messages[-1].content == (Text(SUMMARY_REQUEST),)


def is_after_summary(request: ModelRequest) -> bool:
    return is_summary(request.messages[0])


def is_summary(message: PromptMessage) -> bool:
    first = message.content[0]
    return isinstance(first, Text) and first.text.startswith(SUMMARY_PREFIX)


class Filling:
    """Works with a tool until the window is full; how full a request is depends on its messages."""

    def __init__(self, tokens: Callable[[ModelRequest], int], steps: int = 0) -> None:
        self._tokens = tokens
        self._steps = steps
        self._summaries = 0

    def __call__(self, request: ModelRequest) -> Iterable[ModelEvent]:
        if is_summary_wish(request):
            self._summaries += 1
            yield TextDelta(f"summary {self._summaries}")
            yield UsageReported(self._tokens(request), 50)
        else:
            if self._steps:
                self._steps -= 1
                args_json = f'{{"step": {self._steps}}}'
                yield ToolCallRequested(msgspec.structs.replace(CALL, args_json=args_json))
            else:
                yield TextDelta("answer")
            yield UsageReported(self._tokens(request), 10)
        yield Finished()


def full_unless_summarised(request: ModelRequest) -> int:
    return 100 if is_after_summary(request) else 800


def always_full(_: ModelRequest) -> int:
    return 900


def triplets(stage: Stage) -> list[Message]:
    return [message for message in stage.messages if message.is_compressed]


async def test_a_full_window_is_summarised_between_steps_and_the_work_goes_on_from_there() -> None:
    stage = Stage(Filling(full_unless_summarised, steps=1), tool("look"), setup=SMALL)
    await stage.ask()
    assert [(m.role, m.visibility) for m in triplets(stage)] == [
        (Role.USER, Visibility.MODEL),
        (Role.ASSISTANT, Visibility.USER),
        (Role.TOOL, Visibility.BOTH),
    ]
    boundary, call, result = (message.content[0] for message in triplets(stage))
    assert boundary == Text(f"{SUMMARY_PREFIX}\n\nsummary 1")
    assert isinstance(call, ToolCall)
    assert call.tool_name == CHAT_SUMMARIZED
    assert call.tool_call_id.startswith("chat_summarized_")
    assert isinstance(result, ToolResult)
    # 800 read, 10 written, and the result of the tool as an estimate.
    assert json.loads(result.result_json) == {
        "summary": "summary 1",
        "source": "automatic",
        "threshold_percent": 70,
        "usage_percent": 81,
        "context_tokens": 816,
        "context_limit_tokens": 1000,
    }
    last = stage.model.requests[-1].messages
    assert [message.content for message in last] == [(boundary,)]
    assert stage.texts[-1] == ("assistant", "answer")
    assert (stage.status, stage.state.compactions) == (Status.WAITING, 1)


async def test_a_last_answer_that_fills_the_window_is_summarised_and_the_turn_goes_on() -> None:
    stage = Stage(Filling(full_unless_summarised), setup=SMALL)
    await stage.ask()
    assert [message.role.value for message in stage.messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert stage.status == Status.WAITING


@pytest.mark.parametrize("steps", [1, 0])
async def test_instructions_and_orders_are_in_every_request_also_after_a_summary(
    steps: int,
) -> None:
    """The window is full between two steps, or after the last answer."""
    prompt = SystemPrompt(
        is_subagent=True,
        orders=AgentOrders("reviewer", "Read it all."),
        instruction_files=(ContextFile("AGENTS.md", "be kind"),),
    )

    def tokens(request: ModelRequest) -> int:
        spoken = [each for each in request.messages if each.role is not Role.SYSTEM]
        return full_unless_summarised(replace(request, messages=tuple(spoken)))

    filling = Filling(tokens, steps=steps)
    stage = Stage(filling, tool("look"), setup=replace(SMALL, system_prompt=prompt))
    await stage.ask()
    await stage.ask("more")
    assert triplets(stage)
    expected = [(Text(block),) for block in blocks_of(prompt)]
    assert len(expected) == 3
    after = [each for each in stage.model.requests if any(map(is_summary, each.messages))]
    assert len(after) >= 2
    for request in stage.model.requests:
        systems = [each.content for each in request.messages if each.role is Role.SYSTEM]
        assert systems == expected


async def test_a_last_answer_ends_the_turn_where_going_on_is_turned_off() -> None:
    setup = replace(SMALL, is_final_step_compacted=False)
    stage = Stage(Filling(full_unless_summarised), setup=setup)
    await stage.ask()
    assert stage.texts == [("user", "hello"), ("assistant", "answer")]
    await stage.ask("more")
    assert stage.state.compactions == 1
    assert stage.texts[-1] == ("assistant", "answer")


async def test_a_summary_that_does_not_help_ends_the_next_turn_with_a_clear_error() -> None:
    stage = Stage(Filling(always_full), setup=SMALL)
    await stage.ask()
    assert (stage.status, stage.state.compactions) == (Status.WAITING, 1)
    await stage.ask("more")
    assert stage.state.last_error is not None
    assert stage.state.last_error.kind is ErrorKind.CONTEXT_OVERFLOW
    assert stage.state.last_error.detail == "911 of 1000 tokens are in use (91 %)"


async def test_a_turn_is_summarised_at_most_three_times() -> None:
    """The answer to a summary is small, but the tool fills the window again each time."""

    def tokens(request: ModelRequest) -> int:
        is_fresh = is_after_summary(request) and len(request.messages) == 1
        return 100 if is_fresh else 900

    stage = Stage(Filling(tokens, steps=100), tool("look"), setup=SMALL)
    await stage.ask()
    assert stage.state.compactions == 3
    assert stage.state.last_error is not None
    assert stage.state.last_error.kind is ErrorKind.CONTEXT_OVERFLOW
    assert len(triplets(stage)) == 9


async def test_a_summary_is_shown_to_begin_before_it_is_made_and_to_end_before_it_is_stored() -> (
    None
):
    seen: list[list[str]] = []
    filling = Filling(full_unless_summarised)

    def look() -> None:
        seen.append([type(live.part).__name__ for live in stage.live.open_parts(CHAT)])

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if is_summary_wish(request):
            look()
        return filling(request)

    stage = Stage(play, setup=SMALL)
    stage.commits.after = {CommitCompaction: look}
    await stage.ask()
    assert seen == [["ToolCall"], ["ToolCall", "ToolResult"]]


async def test_below_the_threshold_nothing_is_shown_or_summarised() -> None:
    stage = Stage(Filling(lambda _: 680), setup=SMALL)
    with stage.watch() as watcher:
        await stage.ask()
        (part,) = await live_parts(watcher, 1)
    assert part.part == Text("answer")
    assert triplets(stage) == []


@pytest.mark.parametrize(
    ("limit_tokens", "threshold_percent"), [(0, 70), (1000, 100)], ids=["unknown", "off"]
)
async def test_without_a_known_window_or_with_the_threshold_off_nothing_is_summarised(
    limit_tokens: int, threshold_percent: int
) -> None:
    model = ModelProfile("demo", context_limit_tokens=limit_tokens)
    setup = TurnSetup(model, threshold_percent=threshold_percent)
    stage = Stage(Filling(always_full), setup=setup)
    await stage.ask()
    assert triplets(stage) == []


async def test_by_hand_a_small_history_is_summarised_and_nothing_is_said_after() -> None:
    stage = Stage(Filling(lambda _: 10), setup=replace(SMALL, threshold_percent=100))
    await stage.ask()
    stage.do(RequestCompaction(WORKER))
    with pytest.raises(TransitionNotAllowed):
        stage.do(RequestCompaction(WORKER))
    await stage.run()
    result = stage.messages[-1].content[0]
    assert isinstance(result, ToolResult)
    assert json.loads(result.result_json)["source"] == "manual"
    assert (stage.status, stage.state.compactions) == (Status.WAITING, 0)
    assert not stage.state.is_compaction_requested


async def test_by_hand_after_an_error_clears_it_and_goes_on_with_the_queue() -> None:
    broken = iter((True, False, False, False))

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if len(stage.messages) > 2 and next(broken):
            raise ModelError(ErrorKind.CONFIG, "no such model", is_retryable=False)
        yield TextDelta("fine")
        yield Finished()

    stage = Stage(play)
    await stage.ask("one")
    await stage.ask("two")
    assert stage.state.last_error is not None
    stage.do(RequestCompaction(WORKER))
    stage.send("three")
    await stage.run()
    assert stage.state.last_error is None
    assert stage.texts[-2:] == [("user", "three"), ("assistant", "fine")]


async def test_another_model_summarises_and_its_smaller_window_counts() -> None:
    search = ToolCall("s", "web_search", "{}", provider_executed=True)
    found = ToolResult("s", "web_search", "[]", ToolOutcome.DONE, provider_executed=True)

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if not is_summary_wish(request) and not is_after_summary(request):
            yield ToolCallRequested(search)
            yield ProviderToolResult(found)
        yield TextDelta("words")
        yield UsageReported(100 if is_after_summary(request) else 800, 10)
        yield Finished()

    setup = TurnSetup(
        ModelProfile("large", context_limit_tokens=100_000),
        summariser=ModelProfile("small", context_limit_tokens=1000),
    )
    stage = Stage(play, setup=setup)
    await stage.ask()
    answered, summarised, went_on = stage.model.requests
    assert (answered.model, summarised.model, went_on.model) == ("large", "small", "large")
    texts = [part.text for part in summarised.messages[1].content if isinstance(part, Text)]
    assert texts == ["[the provider ran web_search with {}]", "[web_search gave []]", "words"]
    assert not summarised.may_call_tools
    use = triplets(stage)[1].use
    assert use is not None
    assert use.model_id == "small"


async def test_a_summary_that_fails_is_shown_and_tried_again() -> None:
    failures = iter((True, False))

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if is_summary_wish(request) and next(failures):
            raise ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True)
        return filling(request)

    filling = Filling(full_unless_summarised, steps=1)
    stage = Stage(play, tool("look"), setup=SMALL)
    stage.send()
    with stage.watch() as watcher:
        async with stage.running():
            await stage.clock.until_sleeping()
            stage.clock.advance(1)
        parts = [part.part for part in await live_parts(watcher, 6)]
    assert [type(part).__name__ for part in parts] == [
        "ToolCall",
        "ToolResult",
        "ToolCall",
        "ToolResult",
        "ToolCall",
        "ToolResult",
    ]
    outcomes = [part.outcome for part in parts if isinstance(part, ToolResult)]
    assert outcomes == [ToolOutcome.DONE, ToolOutcome.FAILED, ToolOutcome.DONE]
    assert stage.texts[-1] == ("assistant", "answer")


async def test_an_empty_summary_ends_the_turn() -> None:
    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if is_summary_wish(request):
            return (TextDelta(" "), Finished())
        return (TextDelta("hi"), UsageReported(800, 10), Finished())

    stage = Stage(play, setup=SMALL)
    await stage.ask()
    assert stage.state.last_error is not None
    assert "could not be summarised" in stage.state.last_error.message


async def test_later_turns_are_summarised_again() -> None:
    filling = Filling(lambda request: 100 if len(request.messages) < 4 else 800)
    stage = Stage(filling, setup=SMALL)
    for text in ("one", "two", "three", "four", "five"):
        await stage.ask(text)
    assert len(triplets(stage)) == 6
    assert stage.status == Status.WAITING
