"""Telemetry that stays in the process, for tests."""

from collections.abc import Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from prometheus_client import CollectorRegistry

from parley.telemetry.providers import RedactingSpanExporter, meter_provider
from parley.telemetry.redaction import Redactor
from parley.telemetry.telemetry import SCOPE, Telemetry


class InMemoryTelemetry:
    """A `Telemetry` that records every span and does not change logging or use the network."""

    def __init__(self, service: str = "test") -> None:
        redactor = Redactor()
        registry = CollectorRegistry()
        resource = Resource({"service.name": service})
        self._exporter = InMemorySpanExporter()
        traces = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        traces.add_span_processor(
            SimpleSpanProcessor(RedactingSpanExporter(self._exporter, redactor))
        )
        metrics = meter_provider(resource, registry=registry, otlp_endpoint=None)
        self.telemetry = Telemetry(
            service=service,
            instance=f"{service}-1",
            tracer=traces.get_tracer(SCOPE),
            meter=metrics.get_meter(SCOPE),
            redactor=redactor,
            registry=registry,
        )

    def spans(self) -> Sequence[ReadableSpan]:
        """Return the finished spans, in the order they ended."""
        return self._exporter.get_finished_spans()
