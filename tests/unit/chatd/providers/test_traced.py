"""What telemetry learns of a call, and what it does not."""

import pytest

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReported,
)
from chatd.models.engine.target import Target
from chatd.providers.traced import TracedCalls
from parley.clock import FakeClock
from parley.settings import Secret
from parley.telemetry import InMemoryTelemetry

TARGET = Target("p", ProviderType.ANTHROPIC, "Anthropic", "claude", "", Secret("key"))
REQUEST = ModelRequest("m", (), (), chat_id="c1")


def play(calls: TracedCalls, clock: FakeClock, *events: ModelEvent) -> None:
    """Have a call answered with events, letting time pass before each."""
    with calls.watching(REQUEST, TARGET) as call:
        for event in events:
            clock.advance(1)
            call.took(event)


def test_a_call_is_told_by_who_answered_how_fast_and_with_how_many_tokens() -> None:
    memory, clock = InMemoryTelemetry(), FakeClock()
    events = (
        Heartbeat(),
        TextDelta("secret words"),
        UsageReported(10, 5, reasoning_tokens=2, cache_read_tokens=3, cache_write_tokens=4),
        Finished(),
    )
    play(TracedCalls(memory.telemetry, clock), clock, *events)
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


def test_a_call_that_fails_is_told_by_its_kind_of_error() -> None:
    memory, clock = InMemoryTelemetry(), FakeClock()
    error = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True)
    calls = TracedCalls(memory.telemetry, clock)
    with pytest.raises(ModelError), calls.watching(REQUEST, TARGET):
        raise error
    (span,) = memory.spans()
    assert span.attributes is not None
    assert span.attributes["error.type"] == "ModelError"
