"""Models that take too long, say too much, or show that they live while they say nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import ChatState
from chatd.content.domain.messages import ErrorKind, FinishReason, TurnError
from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelEvent,
    ModelRequest,
    ProviderToolResult,
    ReasoningDelta,
    TextDelta,
    ToolCallRequested,
    ToolInputDelta,
)
from chatd.models.domain.profile import ModelProfile
from chatd.providers.scripted import ScriptedModel
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.engine.answer import Answer, ignore_part
from chatd.turns.engine.dependencies import TurnLimits
from chatd.turns.engine.stream import Broken, ModelStream, StreamLimits
from parley.clock import FakeClock
from support.chatd.turns.turn_stage import Stage

ACME = TurnSetup(ModelProfile("demo", provider="Acme"))


class Paced:
    """Yields one event each time it is told to, first to last."""

    def __init__(self, *events: ModelEvent) -> None:
        self._events = events
        self._may_go_on = asyncio.Semaphore(0)
        self._has_gone_on = asyncio.Semaphore(0)

    async def next(self) -> None:
        """Let the next event out, and wait until it was taken."""
        self._may_go_on.release()
        await self._has_gone_on.acquire()

    async def __call__(self, _: ModelRequest) -> AsyncIterator[ModelEvent]:
        for event in self._events:
            await self._may_go_on.acquire()
            yield event
            self._has_gone_on.release()
        await asyncio.Event().wait()


async def never() -> ChatState:
    await asyncio.Event().wait()
    raise AssertionError


async def broken(model: Paced, pauses_s: Iterable[float] = (), provider: str = "Acme") -> TurnError:
    """Return how a model's stream breaks that says a thing after each pause, and then no more."""
    clock = FakeClock()
    stream = ModelStream(ScriptedModel(model), StreamLimits(), clock, provider)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        request, answer = ModelRequest("demo", (), ()), Answer(ignore_part, clock)
        reading = tasks.create_task(stream.read(request, answer, never))
        for pause_s in pauses_s:
            await clock.until_sleeping()
            clock.advance(pause_s)
            await model.next()
        await clock.until_sleeping()
        clock.advance(10_000)
    end = reading.result()
    assert isinstance(end, Broken)
    return end.error.turn_error


async def test_a_model_that_thinks_visibly_is_not_silent() -> None:
    error = await broken(Paced(*[Heartbeat()] * 5), [50, *[500] * 4])
    assert error == TurnError(
        "Acme stopped sending data.",
        ErrorKind.STREAM_SILENCE_TIMEOUT,
        provider="Acme",
        is_retryable=True,
    )


async def test_a_model_that_says_nothing_at_all_is_named() -> None:
    assert await broken(Paced()) == TurnError(
        "Acme did not begin to answer in time.",
        ErrorKind.STARTUP_TIMEOUT,
        provider="Acme",
        is_retryable=True,
    )


async def test_without_a_name_it_is_the_provider() -> None:
    error = await broken(Paced(), provider="")
    assert error.message == "The AI provider did not begin to answer in time."


@pytest.mark.parametrize("event", [Heartbeat(), TextDelta("x")], ids=["signs of life", "words"])
async def test_a_drip_is_not_listened_to_for_ever(event: ModelEvent) -> None:
    error = await broken(Paced(*[event] * 8), [50, *[500] * 7])
    assert (error.kind, error.is_retryable, error.detail) == (ErrorKind.TIMEOUT, False, "3600 s")


def endless(event: ModelEvent) -> Stage:
    """Return a stage with a model that says one thing without end."""

    async def play(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        while True:
            yield event

    stream = replace(StreamLimits(), characters_max=1000, parts_max=100)
    return Stage(play, setup=ACME, limits=TurnLimits(stream=stream))


async def test_an_answer_without_end_is_stopped_and_not_asked_for_again() -> None:
    search = ToolResult("s", "web_search", "x" * 100, ToolOutcome.DONE, provider_executed=True)
    for event in (
        TextDelta("word "),
        ReasoningDelta("hm "),
        ToolInputDelta("a", "look", "xxxxx"),
        ToolCallRequested(ToolCall("a", "look", "{}")),
        ProviderToolResult(search),
    ):
        stage = endless(event)
        await stage.ask()
        assert stage.state.last_error == TurnError(
            "Acme sent more than an answer may hold. Ask for less at once.",
            ErrorKind.GENERIC,
            detail="at most 1000 characters in 100 parts",
            provider="Acme",
            attempts=1,
        )
        assert len(stage.model.requests) == 1


async def test_a_refusal_names_its_provider_and_ends_the_turn() -> None:
    refused = Finished(FinishReason.CONTENT_FILTER, "violence")
    stage = Stage(lambda _: (refused,), setup=ACME)
    await stage.ask()
    assert stage.state.last_error == TurnError(
        "Acme blocked this answer under its content policy.",
        ErrorKind.CONTENT_FILTER,
        detail="violence",
        provider="Acme",
        attempts=1,
    )
    assert len(stage.model.requests) == 1
