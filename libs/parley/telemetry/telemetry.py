"""The tracer, meter and redactor of a process, and the function that starts them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.semconv.attributes.service_attributes import SERVICE_INSTANCE_ID, SERVICE_NAME
from opentelemetry.trace import Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, generate_latest

from parley.telemetry.exposition import serve_metrics
from parley.telemetry.logs import LogFormat, LogLevel, logging_to_stderr
from parley.telemetry.providers import meter_provider, tracer_provider
from parley.telemetry.redaction import Redactor

SCOPE: Final = "parley"
W3C: Final = TraceContextTextMapPropagator()


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The telemetry of a process: a tracer, a meter, and the redactor for all output.

    Create instruments from `meter` once and keep them; creating one is slow, using it is not.
    """

    service: str
    instance: str
    tracer: Tracer
    meter: Meter
    redactor: Redactor
    registry: CollectorRegistry
    metrics_address: str | None = None

    def metrics_text(self) -> str:
        """Return every metric in the Prometheus text format."""
        return self.redactor.clean(generate_latest(self.registry).decode())

    def inject(self, carrier: dict[str, str]) -> None:
        """Write the current trace context into `carrier` as W3C headers."""
        W3C.inject(carrier)

    def extract(self, carrier: Mapping[str, str]) -> Context:
        """Return the trace context of the W3C headers (lower case) in `carrier`."""
        return W3C.extract(carrier)

    def redact(self, value: str) -> None:
        """Redact `value` from everything this process logs or exports from now on."""
        self.redactor.register(value)

    def clean(self, text: str) -> str:
        """Return `text` with secrets redacted, for output other than logs and traces."""
        return self.redactor.clean(text)


@asynccontextmanager
async def start(
    service: str,
    *,
    instance: str,
    log_level: LogLevel = LogLevel.INFO,
    log_format: LogFormat = LogFormat.TEXT,
    otlp_endpoint: str | None = None,
    metrics_listen: str | None = None,
) -> AsyncIterator[Telemetry]:
    """Log, trace and count for `service` until the context ends.

    Without `otlp_endpoint` nothing is exported, but trace ids are made and passed on.

    Args:
        service: The service's name, as logs and traces show it.
        instance: Distinguishes this process from its replicas.
        log_level: The least severe level that is written.
        log_format: Text for people or JSON for programs.
        otlp_endpoint: The collector's gRPC address, http://host:port or https://host:port.
        metrics_listen: The host:port that serves GET /metrics.

    Raises:
        OtlpEndpointInvalid: `otlp_endpoint` is not an http or https URL.
        MetricsAddressInvalid: `metrics_listen` is not host:port.
        MetricsAddressTaken: `metrics_listen` cannot be bound.
    """
    redactor = Redactor()
    registry = CollectorRegistry()
    resource = Resource.create({SERVICE_NAME: service, SERVICE_INSTANCE_ID: instance})
    async with AsyncExitStack() as stack:
        stack.enter_context(
            logging_to_stderr(
                service, instance=instance, level=log_level, form=log_format, redactor=redactor
            )
        )
        metrics = meter_provider(resource, registry=registry, otlp_endpoint=otlp_endpoint)
        traces = tracer_provider(resource, otlp_endpoint=otlp_endpoint, redactor=redactor)
        stack.push_async_callback(_shut_down, traces, metrics)
        address = None
        if metrics_listen is not None:
            address = await stack.enter_async_context(
                serve_metrics(metrics_listen, lambda: telemetry.metrics_text())
            )
        telemetry = Telemetry(
            service=service,
            instance=instance,
            tracer=traces.get_tracer(SCOPE),
            meter=metrics.get_meter(SCOPE),
            redactor=redactor,
            registry=registry,
            metrics_address=address,
        )
        yield telemetry


async def _shut_down(traces: TracerProvider, metrics: MeterProvider) -> None:
    """Flush to the collector in threads and in parallel: it may be slow or unreachable."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(asyncio.to_thread(traces.shutdown))
        tasks.create_task(asyncio.to_thread(metrics.shutdown))
