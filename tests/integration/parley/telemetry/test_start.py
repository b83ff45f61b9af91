"""Telemetry with real sockets: the endpoint for scrapers and the export to a collector."""

import asyncio
import json
import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from parley.telemetry import LogFormat, MetricsAddressInvalid, MetricsAddressTaken, start


async def ask(address: str | None, request: bytes) -> tuple[str, str]:
    """Return the status line and the body."""
    assert address is not None
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    writer.write_eof()
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return head.split("\r\n")[0], body


async def test_a_scraper_gets_the_metrics() -> None:
    async with (
        asyncio.timeout(5),
        start("chatd", instance="1", metrics_listen="127.0.0.1:0") as telemetry,
    ):
        telemetry.meter.create_counter("parley.turns").add(3)
        status, body = await ask(
            telemetry.metrics_address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        )
    assert status == "HTTP/1.1 200 OK"
    assert "parley_turns_total 3.0\n" in body


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /metrics?x=1 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"),
        (b"nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (b"GET /metrics", "HTTP/1.1 400 Bad Request"),
        (b"", "HTTP/1.1 400 Bad Request"),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request"),
    ],
)
async def test_every_other_request_gets_a_plain_answer(request_bytes: bytes, status: str) -> None:
    async with (
        asyncio.timeout(5),
        start("chatd", instance="1", metrics_listen="127.0.0.1:0") as telemetry,
    ):
        assert (await ask(telemetry.metrics_address, request_bytes))[0] == status


async def test_a_taken_port_is_said_clearly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(MetricsAddressTaken) as caught:
            async with asyncio.timeout(5), start("chatd", instance="1", metrics_listen=taken):
                pass
    assert (caught.value.address, caught.value.cause) == (taken, "address already in use")


@pytest.mark.parametrize("listen", ["9464", ":9464", "host:", "host:port", "host:70000"])
async def test_an_address_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(MetricsAddressInvalid) as caught:
        async with asyncio.timeout(5), start("chatd", instance="1", metrics_listen=listen):
            pass
    assert caught.value.address == listen


async def test_logs_go_to_standard_error_with_the_trace_and_without_secrets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with (
        asyncio.timeout(5),
        start("chatd", instance="1", log_format=LogFormat.JSON) as telemetry,
    ):
        telemetry.redact("canary-7f3a91")
        with telemetry.tracer.start_as_current_span("turn") as span:
            logging.getLogger("chatd").info("got canary-7f3a91")
    line = json.loads(capsys.readouterr().err)
    assert line["message"] == "got [redacted]"
    assert line["trace_id"] == f"{span.get_span_context().trace_id:032x}"


class Collector:
    """Takes the names of what is exported to it."""

    def __init__(self) -> None:
        self.spans: SimpleQueue[str] = SimpleQueue()
        self.metrics: SimpleQueue[str] = SimpleQueue()

    def export_traces(
        self, request: ExportTraceServiceRequest, _: grpc.ServicerContext
    ) -> ExportTraceServiceResponse:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.put(span.name)
        return ExportTraceServiceResponse()

    def export_metrics(
        self, request: ExportMetricsServiceRequest, _: grpc.ServicerContext
    ) -> ExportMetricsServiceResponse:
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self.metrics.put(metric.name)
        return ExportMetricsServiceResponse()


@contextmanager
def collector() -> Iterator[tuple[Collector, str]]:
    taking = Collector()
    traces = grpc.unary_unary_rpc_method_handler(
        taking.export_traces,
        request_deserializer=ExportTraceServiceRequest.FromString,
        response_serializer=ExportTraceServiceResponse.SerializeToString,
    )
    metrics = grpc.unary_unary_rpc_method_handler(
        taking.export_metrics,
        request_deserializer=ExportMetricsServiceRequest.FromString,
        response_serializer=ExportMetricsServiceResponse.SerializeToString,
    )
    package = "opentelemetry.proto.collector"
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(
                f"{package}.trace.v1.TraceService", {"Export": traces}
            ),
            grpc.method_handlers_generic_handler(
                f"{package}.metrics.v1.MetricsService", {"Export": metrics}
            ),
        ]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield taking, f"http://127.0.0.1:{port}"
    finally:
        server.stop(None).wait(5)


async def test_with_a_collector_spans_and_metrics_arrive_there_at_the_end() -> None:
    with collector() as (taking, endpoint):
        async with (
            asyncio.timeout(10),
            start("chatd", instance="1", otlp_endpoint=endpoint) as telemetry,
        ):
            telemetry.redact("canary-7f3a91")
            telemetry.meter.create_counter("parley.turns").add(1)
            with telemetry.tracer.start_as_current_span("turn canary-7f3a91"):
                pass
        assert taking.spans.get(timeout=5) == "turn [redacted]"
        assert taking.metrics.get(timeout=5) == "parley.turns"
