"""The OpenTelemetry providers of one process; the global ones are not used."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased
from opentelemetry.trace import Status
from opentelemetry.util.types import Attributes, AttributeValue
from prometheus_client import CollectorRegistry

from parley.telemetry.errors import OtlpEndpointInvalid
from parley.telemetry.redaction import Redactor

# An unreachable collector must not delay the exit of a process for longer than this.
EXPORT_S_MAX: Final = 3.0


def tracer_provider(
    resource: Resource, *, otlp_endpoint: str | None, redactor: Redactor
) -> TracerProvider:
    """Return a provider that exports to `otlp_endpoint`, or one that only makes trace ids.

    Either follows the sampling decision of the caller, so that the flag is passed on.

    Raises:
        OtlpEndpointInvalid: `otlp_endpoint` is not an http or https URL.
    """
    if otlp_endpoint is None:
        return TracerProvider(
            sampler=ParentBased(ALWAYS_OFF), resource=resource, shutdown_on_exit=False
        )
    _check(otlp_endpoint)
    # Imported here, because it is slow and most processes do not export.
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    exporter = OTLPSpanExporter(endpoint=otlp_endpoint, timeout=EXPORT_S_MAX)
    provider = TracerProvider(
        sampler=ParentBased(ALWAYS_ON), resource=resource, shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(RedactingSpanExporter(exporter, redactor)))
    return provider


def meter_provider(
    resource: Resource, *, registry: CollectorRegistry, otlp_endpoint: str | None
) -> MeterProvider:
    """Return a provider whose metrics are in `registry` and, if set, sent to `otlp_endpoint`.

    Raises:
        OtlpEndpointInvalid: `otlp_endpoint` is not an http or https URL.
    """
    readers: list[MetricReader] = [
        PrometheusMetricReader(registry=registry, scope_info_enabled=False)
    ]
    if otlp_endpoint is not None:
        _check(otlp_endpoint)
        # Imported here, because it is slow and most processes do not export.
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter

        readers.append(
            PeriodicExportingMetricReader(
                OTLPMetricExporter(endpoint=otlp_endpoint, timeout=EXPORT_S_MAX)
            )
        )
    return MeterProvider(
        metric_readers=readers,
        resource=resource,
        exemplar_filter=AlwaysOffExemplarFilter(),
        shutdown_on_exit=False,
    )


class RedactingSpanExporter(SpanExporter):
    """Redacts spans and passes them to another exporter."""

    def __init__(self, exporter: SpanExporter, redactor: Redactor) -> None:
        self._exporter = exporter
        self._redactor = redactor

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export redacted copies of `spans`."""
        return self._exporter.export([self._clean_span(span) for span in spans])

    def shutdown(self) -> None:
        """Shut the other exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the other exporter."""
        return self._exporter.force_flush(timeout_millis)

    def _clean_span(self, span: ReadableSpan) -> ReadableSpan:
        description = span.status.description
        return ReadableSpan(
            name=self._redactor.clean(span.name),
            context=span.get_span_context(),
            parent=span.parent,
            resource=span.resource,
            attributes=self._clean_attributes(span.attributes),
            events=[
                Event(event.name, self._clean_attributes(event.attributes), event.timestamp)
                for event in span.events
            ],
            links=span.links,
            kind=span.kind,
            status=Status(
                span.status.status_code, description and self._redactor.clean(description)
            ),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    def _clean_attributes(self, attributes: Attributes) -> Mapping[str, AttributeValue]:
        return {key: self._clean_value(value) for key, value in (attributes or {}).items()}

    def _clean_value(self, value: AttributeValue) -> AttributeValue:
        if isinstance(value, str):
            return self._redactor.clean(value)
        if isinstance(value, Sequence):
            return tuple(
                self._redactor.clean(item) if isinstance(item, str) else item for item in value
            )
        return value


def _check(otlp_endpoint: str) -> None:
    parts = urlsplit(otlp_endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OtlpEndpointInvalid(otlp_endpoint)
