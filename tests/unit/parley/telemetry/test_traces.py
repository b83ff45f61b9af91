"""Trace ids that exist and travel, and spans without secrets."""

from contextlib import suppress

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import SpanContext, StatusCode
from prometheus_client import CollectorRegistry

from parley.telemetry import InMemoryTelemetry, OtlpEndpointInvalid, Redactor
from parley.telemetry.providers import meter_provider, tracer_provider

CANARY = "canary-7f3a91"
SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def quiet_tracer() -> trace.Tracer:
    provider = tracer_provider(Resource({}), otlp_endpoint=None, redactor=Redactor())
    return provider.get_tracer("test")


def test_without_a_collector_spans_have_ids_and_are_not_recorded() -> None:
    tracer = quiet_tracer()
    with (
        tracer.start_as_current_span("outer") as outer,
        tracer.start_as_current_span("inner") as inner,
    ):
        contexts = (outer.get_span_context(), inner.get_span_context())
        assert (outer.is_recording(), inner.is_recording()) == (False, False)
    assert all(context.is_valid for context in contexts)
    assert contexts[0].trace_id == contexts[1].trace_id
    assert contexts[0].span_id != contexts[1].span_id


def test_a_trace_travels_through_a_carrier() -> None:
    telemetry = InMemoryTelemetry().telemetry
    carrier: dict[str, str] = {}
    with telemetry.tracer.start_as_current_span("here") as span:
        telemetry.inject(carrier)
        sent = span.get_span_context()

    received = trace.get_current_span(telemetry.extract(carrier)).get_span_context()

    assert list(carrier) == ["traceparent"]
    assert (received.trace_id, received.span_id) == (sent.trace_id, sent.span_id)
    assert received.is_remote


@pytest.mark.parametrize(("header", "is_sampled"), [(SAMPLED, True), (UNSAMPLED, False)])
def test_what_the_caller_decided_about_sampling_survives_the_way_through(
    header: str, is_sampled: bool
) -> None:
    parent = InMemoryTelemetry().telemetry.extract({"traceparent": header})
    context: SpanContext = quiet_tracer().start_span("x", context=parent).get_span_context()
    assert f"{context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert context.trace_flags.sampled == is_sampled


@pytest.mark.parametrize("carrier", [{}, {"traceparent": "nonsense"}, {"traceparent": ""}])
def test_a_carrier_without_a_trace_starts_a_new_one(carrier: dict[str, str]) -> None:
    context = InMemoryTelemetry().telemetry.extract(carrier)
    assert not trace.get_current_span(context).get_span_context().is_valid


def test_exported_spans_show_no_registered_secret() -> None:
    memory = InMemoryTelemetry()
    memory.telemetry.redact(CANARY)
    with suppress(ValueError), memory.telemetry.tracer.start_as_current_span(CANARY) as span:
        span.set_attributes({"one": CANARY, "many": (CANARY, "fine"), "number": 3})
        span.add_event("note", {"what": CANARY})
        raise ValueError(CANARY)

    (exported,) = memory.spans()
    assert CANARY not in exported.to_json()
    assert exported.name == "[redacted]"
    assert exported.attributes == {
        "one": "[redacted]",
        "many": ("[redacted]", "fine"),
        "number": 3,
    }
    assert exported.status.status_code is StatusCode.ERROR
    assert [event.name for event in exported.events] == ["note", "exception"]


@pytest.mark.parametrize("endpoint", ["localhost:4317", "ftp://host:1", "http://"])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(OtlpEndpointInvalid) as traces:
        tracer_provider(Resource({}), otlp_endpoint=endpoint, redactor=Redactor())
    with pytest.raises(OtlpEndpointInvalid) as metrics:
        meter_provider(Resource({}), registry=CollectorRegistry(), otlp_endpoint=endpoint)
    assert (traces.value.endpoint, metrics.value.endpoint) == (endpoint, endpoint)


def test_the_global_providers_are_left_alone() -> None:
    before = trace.get_tracer_provider()
    InMemoryTelemetry()
    assert trace.get_tracer_provider() is before
