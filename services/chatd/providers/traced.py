"""Telemetry of model calls: provider, model, duration and tokens."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelEvent,
    ModelRequest,
    RequestSent,
    UsageReported,
)
from chatd.models.engine.target import Target
from parley.clock import Clock
from parley.telemetry import ModelCall, ModelInstruments, Telemetry, TokenUsage, model_call

# The names of the GenAI conventions; a compatible endpoint has its own.
CONVENTIONAL: Final = {
    ProviderType.ANTHROPIC: "anthropic",
    ProviderType.OPENAI: "openai",
    ProviderType.AZURE: "azure.ai.openai",
    ProviderType.BEDROCK: "aws.bedrock",
}


class TracedCalls:
    """Records a span and metrics for every call; its events are observed, not changed."""

    def __init__(self, telemetry: Telemetry, clock: Clock) -> None:
        self._tracer = telemetry.tracer
        self._instruments = ModelInstruments.create(telemetry.meter)
        self._clock = clock

    @contextmanager
    def watching(self, request: ModelRequest, target: Target) -> Iterator["TracedCall"]:
        """Trace one call for as long as the context lasts; an exception is recorded too."""
        with model_call(
            self._tracer,
            self._instruments,
            self._clock,
            provider=CONVENTIONAL.get(target.provider_type, target.provider_name),
            model=target.model_name,
            conversation_id=request.chat_id or None,
        ) as call:
            yield TracedCall(call)


class TracedCall:
    """One call that is being traced."""

    def __init__(self, call: ModelCall) -> None:
        self._call = call
        self._usage = UsageReported()

    def took(self, event: ModelEvent) -> None:
        """Record an event of the answer."""
        match event:
            case UsageReported():
                self._usage = event
            case Finished(reason):
                self._call.answered(_tokens(self._usage), finish_reason=reason)
            case Heartbeat() | RequestSent():
                pass
            case _:
                self._call.received_chunk()


def _tokens(usage: UsageReported) -> TokenUsage:
    """Return the usage as the conventions count it: with the cached tokens in the input."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return TokenUsage(
        input_tokens=usage.input_tokens + cached,
        output_tokens=usage.written_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )
