"""Model calls by the GenAI semantic conventions."""

import re
from contextlib import suppress

from opentelemetry.trace import SpanKind

from parley.clock import FakeClock
from parley.telemetry import InMemoryTelemetry, ModelInstruments, TokenUsage, model_call

CALLED = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": "some-model",
}


def sums(memory: InMemoryTelemetry) -> dict[str, float]:
    """Return the sum of every histogram, token usage told apart by the type of token."""
    found = {}
    for line in memory.telemetry.metrics_text().splitlines():
        if match := re.match(r"(\w+)_sum\{(?:.*gen_ai_token_type=\"(\w+)\")?.*\} (\S+)", line):
            name, token_type, value = match.groups()
            found[f"{name} {token_type}" if token_type else name] = float(value)
    return found


def test_a_call_is_a_client_span_with_what_was_asked_and_what_was_used() -> None:
    memory, clock = InMemoryTelemetry(), FakeClock()
    instruments = ModelInstruments.create(memory.telemetry.meter)
    with model_call(
        memory.telemetry.tracer,
        instruments,
        clock,
        provider="anthropic",
        model="some-model",
        conversation_id="chat-1",
    ) as call:
        clock.advance(0.5)
        call.received_chunk()
        clock.advance(1.5)
        call.received_chunk()
        usage = TokenUsage(100, 20, cache_read_tokens=60, cache_write_tokens=5, reasoning_tokens=7)
        call.answered(
            usage, finish_reason="stop", response_model="some-model-1", response_id="msg-1"
        )

    (span,) = memory.spans()
    assert (span.name, span.kind) == ("chat some-model", SpanKind.CLIENT)
    assert span.attributes == {
        **CALLED,
        "gen_ai.conversation.id": "chat-1",
        "gen_ai.response.time_to_first_chunk": 0.5,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.model": "some-model-1",
        "gen_ai.response.id": "msg-1",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 5,
        "gen_ai.usage.reasoning.output_tokens": 7,
    }
    assert sums(memory) == {
        "gen_ai_client_operation_duration_seconds": 2.0,
        "gen_ai_client_operation_time_to_first_chunk_seconds": 0.5,
        "gen_ai_client_token_usage input": 100.0,
        "gen_ai_client_token_usage output": 20.0,
    }


def test_a_call_that_fails_is_timed_and_names_the_type_of_its_error() -> None:
    memory, clock = InMemoryTelemetry(), FakeClock()
    instruments = ModelInstruments.create(memory.telemetry.meter)
    with (
        suppress(TimeoutError),
        model_call(
            memory.telemetry.tracer, instruments, clock, provider="anthropic", model="some-model"
        ),
    ):
        clock.advance(3)
        raise TimeoutError

    (span,) = memory.spans()
    assert span.attributes == {**CALLED, "error.type": "TimeoutError"}
    assert sums(memory) == {"gen_ai_client_operation_duration_seconds": 3.0}
    assert 'error_type="TimeoutError"' in memory.telemetry.metrics_text()
