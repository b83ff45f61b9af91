"""Calls of models as telemetry sees them: who answered, how fast, with how many tokens."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from chatd.domain.catalogue import ProviderType
from chatd.domain.model import Finished, Heartbeat, ModelEvent, ModelRequest, UsageReported
from chatd.providers.guarded import Models
from chatd.providers.target import Target
from chatd.providers.wire import Wire
from parley.clock import Clock
from parley.telemetry import ModelInstruments, Telemetry, TokenUsage, model_call

# The names that the GenAI conventions give; a compatible endpoint is known by its own.
CONVENTIONAL: Final = {
    ProviderType.ANTHROPIC: "anthropic",
    ProviderType.OPENAI: "openai",
    ProviderType.AZURE: "azure.ai.openai",
    ProviderType.BEDROCK: "aws.bedrock",
}


class TracedModels:
    """Puts a span and measurements around every call."""

    def __init__(self, models: Models, telemetry: Telemetry, clock: Clock) -> None:
        self._models = models
        self._tracer = telemetry.tracer
        self._instruments = ModelInstruments.create(telemetry.meter)
        self._clock = clock

    async def stream(
        self, wire: Wire, request: ModelRequest, target: Target
    ) -> AsyncGenerator[ModelEvent, None]:
        """Ask a model and yield what comes back.

        Raises:
            ModelError: the call failed, at any place of the stream.
        """
        usage = UsageReported()
        with model_call(
            self._tracer,
            self._instruments,
            self._clock,
            provider=CONVENTIONAL.get(target.provider_type, target.provider_name),
            model=target.model_name,
            conversation_id=request.chat_id or None,
        ) as call:
            async with aclosing(self._models.stream(wire, request, target)) as events:
                async for event in events:
                    if isinstance(event, UsageReported):
                        usage = event
                    elif isinstance(event, Finished):
                        call.answered(_tokens(usage), finish_reason=event.reason)
                    elif not isinstance(event, Heartbeat):
                        call.received_chunk()
                    yield event


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
