"""What telemetry learns of a call, and what it does not."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from chatd.domain.catalogue import ProviderType
from chatd.domain.chat import ErrorKind
from chatd.domain.model import (
    Finished,
    Heartbeat,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReported,
)
from chatd.providers.completions import CompletionsWire
from chatd.providers.target import Target
from chatd.providers.traced import TracedModels
from chatd.providers.wire import Wire
from parley.clock import FakeClock
from parley.settings import Secret
from parley.telemetry import InMemoryTelemetry

TARGET = Target("p", ProviderType.ANTHROPIC, "Anthropic", "claude", "", Secret("key"))
REQUEST = ModelRequest("m", (), (), chat_id="c1")


class PlayedModels:
    """Plays events, letting time pass before each, and may fail after the last."""

    def __init__(self, clock: FakeClock, *events: ModelEvent, error: ModelError | None = None):
        self._clock = clock
        self._events = events
        self._error = error

    async def stream(
        self, wire: Wire, request: ModelRequest, target: Target
    ) -> AsyncGenerator[ModelEvent, None]:
        for event in self._events:
            self._clock.advance(1)
            yield event
        if self._error is not None:
            raise self._error


async def consume(models: TracedModels) -> list[ModelEvent]:
    async with aclosing(models.stream(CompletionsWire(), REQUEST, TARGET)) as events:
        return [event async for event in events]


async def test_a_call_is_told_by_who_answered_how_fast_and_with_how_many_tokens() -> None:
    memory, clock = InMemoryTelemetry(), FakeClock()
    events = (
        Heartbeat(),
        TextDelta("secret words"),
        UsageReported(10, 5, reasoning_tokens=2, cache_read_tokens=3, cache_write_tokens=4),
        Finished(),
    )
    models = TracedModels(PlayedModels(clock, *events), memory.telemetry, clock)
    assert await consume(models) == list(events)
    (span,) = memory.spans()
    assert span.name == "chat claude"
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude",
        "gen_ai.conversation.id": "c1",
        "gen_ai.response.time_to_first_chunk": 2.0,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 17,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 4,
        "gen_ai.usage.reasoning.output_tokens": 2,
    }
    assert "secret words" not in span.to_json()


async def test_a_call_that_fails_is_told_by_its_kind_of_error() -> None:
    memory, clock = InMemoryTelemetry(), FakeClock()
    error = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True)
    models = TracedModels(PlayedModels(clock, error=error), memory.telemetry, clock)
    with pytest.raises(ModelError):
        await consume(models)
    (span,) = memory.spans()
    assert span.attributes is not None
    assert span.attributes["error.type"] == "ModelError"
