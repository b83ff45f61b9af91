"""Turns that continue with a fallback model."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from chatd.chats.domain.agents import Agent
from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import RecordRetry
from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import Fallback, Text, ToolCall
from chatd.content.domain.tools import ToolSpec
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId
from chatd.turns.domain.fallbacks import is_fallback_due, lacking
from chatd.turns.domain.retries import Failed
from chatd.turns.domain.turn import TurnSetup
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import Stage, tool

BUSY = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True, provider="first")
QUOTA = ModelError(ErrorKind.USAGE_LIMIT, "over quota", is_retryable=False, provider="first")
OWN = ModelProfile("own", provider="first", provider_id="p1")
OTHER = ModelProfile("other", provider="second", provider_id="p2", is_fallback=True)
SETUP = TurnSetup(OWN, fallback=OTHER)
ENDED = Agent(
    ChatId("00000000-0000-0000-0000-0000000000a1"),
    "First",
    is_explorer=False,
    status=Status.WAITING,
    is_done=True,
    report="It works.",
    error=None,
    cost_micros=0,
    version=7,
)
TAKEN_OVER = Fallback("own", "other", "usage_limit", "over quota")


class OneIsDown:
    """Fails for the turn's own model; the other one calls a tool if there is one, then answers."""

    def __init__(self, error: ModelError, *later: ModelError) -> None:
        self._error = error
        self._later = list(later)

    def __call__(self, request: ModelRequest) -> Iterable[ModelEvent]:
        if request.model == OWN.id:
            raise self._error
        if self._later:
            raise self._later.pop(0)
        yield UsageReported(10, 2)
        if request.tools and request.messages[-1].role is Role.USER:
            yield ToolCallRequested(ToolCall("c1", "look", "{}"))
        else:
            yield TextDelta("here I am")
        yield Finished()


def staged(play: OneIsDown, setup: TurnSetup = SETUP, *specs: ToolSpec) -> Stage:
    return Stage(play, *specs, setup=setup)


async def test_a_turn_over_quota_continues_with_the_fallback_model_and_says_so() -> None:
    stage = staged(OneIsDown(QUOTA))
    await stage.ask()
    assert [request.model for request in stage.model.requests] == ["own", "other"]
    answer = stage.messages[-1]
    assert answer.content == (TAKEN_OVER, Text("here I am"))
    assert answer.use is not None
    assert (answer.use.model_id, answer.use.is_fallback) == ("other", True)
    (retry,) = [each.retry for each in stage.commits.commands if isinstance(each, RecordRetry)]
    assert (retry.delay_ms, retry.fallback) == (0, TAKEN_OVER)


async def test_the_rest_of_the_turn_stays_with_the_fallback_and_the_next_turn_does_not() -> None:
    stage = staged(OneIsDown(QUOTA), SETUP, tool("look"))
    await stage.ask()
    assert [request.model for request in stage.model.requests] == ["own", "other", "other"]
    told = [part for _, content in stage.said for part in content if isinstance(part, Fallback)]
    assert told == [TAKEN_OVER]
    await stage.ask("again")
    assert [request.model for request in stage.model.requests][3:] == ["own", "other", "other"]


async def test_an_overloaded_provider_is_tried_twice_first() -> None:
    stage = staged(OneIsDown(BUSY))
    stage.send()
    async with stage.running():
        assert await stage.clock.until_sleeping() == 1
        stage.clock.advance(1)
    assert [request.model for request in stage.model.requests] == ["own", "own", "other"]


@pytest.mark.parametrize("place", [0, 1])
async def test_an_owner_that_dies_leaves_the_decision_to_the_next_one(place: int) -> None:
    stage = staged(OneIsDown(QUOTA), SETUP, tool("look"))
    stage.send()
    stage.commits.dies_after = place
    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()
    assert stage.texts[-1] == ("assistant", "here I am")
    models = [request.model for request in stage.model.requests]
    assert models == ["own", "other", "other"]
    told = [part for _, content in stage.said for part in content if isinstance(part, Fallback)]
    assert told == [TAKEN_OVER]


class FirstCall:
    """The turn's own model calls a tool once and fills its window; then it is over quota."""

    def __init__(self, tool_name: str) -> None:
        self._calls = [ToolCall("c1", tool_name, "{}")]

    def __call__(self, request: ModelRequest) -> Iterable[ModelEvent]:
        if request.model == OWN.id:
            if not self._calls:
                raise QUOTA
            yield ToolCallRequested(self._calls.pop())
            yield UsageReported(800, 10)
        else:
            yield TextDelta("here I am")
            yield UsageReported(10, 2)
        yield Finished()


async def test_a_summary_before_the_first_answer_keeps_the_decision() -> None:
    small = replace(OWN, context_limit_tokens=1000)
    setup = TurnSetup(small, fallback=replace(OTHER, context_limit_tokens=1000))
    stage = Stage(FirstCall("look"), tool("look"), setup=setup)
    await stage.ask()
    models = [request.model for request in stage.model.requests]
    assert models == ["own", "own", "other", "other"]
    assert stage.state.compactions == 1
    told = [part for _, content in stage.said for part in content if isinstance(part, Fallback)]
    assert told == [TAKEN_OVER]


class LateReports:
    """An agent that ends while its parent waits for a retry."""

    def __init__(self) -> None:
        self._found: list[tuple[Agent, ...]] = [()]

    async def children(self, root_chat_id: ChatId, chat_id: ChatId) -> tuple[Agent, ...]:
        return self._found.pop() if self._found else (ENDED,)


async def test_a_report_of_an_agent_before_the_first_answer_keeps_the_decision() -> None:
    agents = LateReports()
    stage = Stage(FirstCall("spawn_agent"), tool("spawn_agent"), setup=SETUP, agents=agents)
    await stage.ask()
    assert [request.model for request in stage.model.requests] == ["own", "own", "other"]
    assert stage.messages[-1].content == (TAKEN_OVER, Text("here I am"))
    await stage.ask("and now?")
    assert any("It works." in text for _, text in stage.texts)


async def test_a_fallback_model_that_fails_too_is_retried_and_has_no_fallback() -> None:
    stage = staged(OneIsDown(QUOTA, BUSY, QUOTA))
    stage.send()
    async with stage.running():
        assert await stage.clock.until_sleeping() == 2
        stage.clock.advance(2)
    assert [request.model for request in stage.model.requests] == ["own", "other", "other"]
    assert stage.state.last_error == replace(QUOTA.turn_error, attempts=3)


@pytest.mark.parametrize(
    "kind",
    [
        ErrorKind.GENERIC,
        ErrorKind.CONFIG,
        ErrorKind.AUTH,
        ErrorKind.CONTENT_FILTER,
        ErrorKind.MODEL_UNAVAILABLE,
        ErrorKind.PROVIDER_DISABLED,
    ],
)
async def test_errors_that_the_fallback_would_have_too_end_the_turn(kind: ErrorKind) -> None:
    stage = staged(OneIsDown(ModelError(kind, "no", is_retryable=False, status_code=400)))
    await stage.ask()
    assert [request.model for request in stage.model.requests] == ["own"]
    assert stage.state.last_error is not None


@pytest.mark.parametrize(
    "unfit", [replace(OTHER, takes_tools=False), replace(OTHER, context_limit_tokens=8)]
)
async def test_a_model_that_cannot_take_tools_or_the_prompt_is_left_out(
    unfit: ModelProfile,
) -> None:
    stage = staged(OneIsDown(QUOTA), TurnSetup(OWN, fallback=unfit), tool("look"))
    await stage.ask("a prompt that is longer than eight tokens, whatever counts them")
    assert [request.model for request in stage.model.requests] == ["own"]
    assert stage.state.last_error == replace(QUOTA.turn_error, attempts=1)


def test_a_long_wait_and_an_open_breaker_are_not_waited_for() -> None:
    def error(**given: float | bool) -> ModelError:
        return ModelError(ErrorKind.RATE_LIMIT, "slow", is_retryable=True, **given)  # type: ignore[arg-type]

    assert is_fallback_due(Failed(error(retry_after_s=11.0), 1), OWN, OTHER)
    assert is_fallback_due(Failed(error(is_breaker_open=True), 1), OWN, OTHER)
    assert not is_fallback_due(Failed(error(retry_after_s=10.0), 1), OWN, OTHER)
    assert not is_fallback_due(Failed(error(), 1), OWN, OTHER)
    assert is_fallback_due(Failed(error(), 2), OWN, OTHER)


def test_another_model_of_the_same_provider_helps_against_its_load_only() -> None:
    near = replace(OTHER, provider_id="p1")
    down = ModelError(ErrorKind.TIMEOUT, "down", is_retryable=True)
    assert is_fallback_due(Failed(BUSY, 2), OWN, near)
    assert not is_fallback_due(Failed(down, 2), OWN, near)
    assert not is_fallback_due(Failed(QUOTA, 2), OWN, near)
    assert is_fallback_due(Failed(down, 2), OWN, OTHER)


def test_a_window_that_is_not_known_is_large_enough() -> None:
    assert lacking(OTHER, ModelRequest("own", (), ())) is None
