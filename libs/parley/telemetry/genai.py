"""Spans and metrics around calls to language models, by the GenAI semantic conventions."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from opentelemetry.metrics import Histogram, Meter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics as metrics
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.trace import Span, SpanKind, Tracer

from parley.clock import Clock

# The bucket boundaries given by the conventions.
DURATION_S: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)  # fmt: skip  # noqa: E501
TOKENS: Final = tuple(4**power for power in range(14))


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The billed tokens of one call; cached ones are part of `input_tokens`."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelInstruments:
    """The instruments every model call records into; create them once per process."""

    duration: Histogram
    first_chunk: Histogram
    tokens: Histogram

    @classmethod
    def create(cls, meter: Meter) -> "ModelInstruments":
        """Return the instruments on `meter`."""
        return cls(
            duration=meter.create_histogram(
                metrics.GEN_AI_CLIENT_OPERATION_DURATION,
                unit="s",
                description="How long model calls took.",
                explicit_bucket_boundaries_advisory=DURATION_S,
            ),
            first_chunk=meter.create_histogram(
                metrics.GEN_AI_CLIENT_OPERATION_TIME_TO_FIRST_CHUNK,
                unit="s",
                description="How long model calls took to their first chunk.",
                explicit_bucket_boundaries_advisory=DURATION_S,
            ),
            tokens=meter.create_histogram(
                metrics.GEN_AI_CLIENT_TOKEN_USAGE,
                unit="{token}",
                description="Tokens that model calls used.",
                explicit_bucket_boundaries_advisory=TOKENS,
            ),
        )


class ModelCall:
    """One model call in progress; its chunks, result and end are recorded here."""

    def __init__(
        self, span: Span, instruments: ModelInstruments, clock: Clock, labels: dict[str, str]
    ) -> None:
        self._span = span
        self._instruments = instruments
        self._clock = clock
        self._labels = labels
        self._started = clock.monotonic()
        self._has_chunk = False

    def received_chunk(self) -> None:
        """Record that a chunk of the answer arrived; only the first one is timed."""
        if self._has_chunk:
            return
        self._has_chunk = True
        waited_s = self._clock.monotonic() - self._started
        self._instruments.first_chunk.record(waited_s, self._labels)
        self._span.set_attribute(names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, waited_s)

    def answered(
        self,
        usage: TokenUsage,
        *,
        finish_reason: str,
        response_model: str | None = None,
        response_id: str | None = None,
    ) -> None:
        """Record the metadata of the finished answer."""
        attributes: dict[str, str | int | tuple[str, ...]] = {
            names.GEN_AI_RESPONSE_FINISH_REASONS: (finish_reason,),
            names.GEN_AI_USAGE_INPUT_TOKENS: usage.input_tokens,
            names.GEN_AI_USAGE_OUTPUT_TOKENS: usage.output_tokens,
            names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: usage.cache_read_tokens,
            names.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: usage.cache_write_tokens,
            names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: usage.reasoning_tokens,
        }
        if response_model is not None:
            attributes[names.GEN_AI_RESPONSE_MODEL] = response_model
            self._labels[names.GEN_AI_RESPONSE_MODEL] = response_model
        if response_id is not None:
            attributes[names.GEN_AI_RESPONSE_ID] = response_id
        self._span.set_attributes(attributes)
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._instruments.tokens.record(tokens, {**self._labels, names.GEN_AI_TOKEN_TYPE: kind})

    def ended(self, error: BaseException | None = None) -> None:
        """Record the duration of the call, and the error that ended it early."""
        if error is not None:
            self._labels[ERROR_TYPE] = type(error).__qualname__
            self._span.set_attribute(ERROR_TYPE, type(error).__qualname__)
        self._instruments.duration.record(self._clock.monotonic() - self._started, self._labels)


@contextmanager
def model_call(
    tracer: Tracer,
    instruments: ModelInstruments,
    clock: Clock,
    *,
    provider: str,
    model: str,
    operation: str = "chat",
    conversation_id: str | None = None,
) -> Iterator[ModelCall]:
    """Trace and measure one call of `model`; messages and answers are never recorded.

    An error raised inside the context is recorded by its type and raised again.
    """
    labels = {
        names.GEN_AI_OPERATION_NAME: operation,
        names.GEN_AI_PROVIDER_NAME: provider,
        names.GEN_AI_REQUEST_MODEL: model,
    }
    attributes = dict(labels)
    if conversation_id is not None:
        attributes[names.GEN_AI_CONVERSATION_ID] = conversation_id
    with tracer.start_as_current_span(
        f"{operation} {model}", kind=SpanKind.CLIENT, attributes=attributes
    ) as span:
        call = ModelCall(span, instruments, clock, labels)
        try:
            yield call
        except BaseException as error:
            call.ended(error)
            raise
        call.ended()
