import grpc

from parley.rpc.metrics import CallMetrics
from parley.telemetry import InMemoryTelemetry


def lines(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(name)]


def test_calls_are_counted_by_method_and_status() -> None:
    telemetry = InMemoryTelemetry().telemetry
    measures = CallMetrics()
    unpublish = measures.publish(telemetry)
    record = measures.of("a.B/C")
    record(grpc.StatusCode.OK, 0.002)
    record(grpc.StatusCode.OK, 0.002)
    record(grpc.StatusCode.ABORTED, 40.0)
    labels = 'rpc_method="a.B/C",rpc_response_status_code'
    assert lines(telemetry.metrics_text(), "rpc_server_requests_total") == [
        f'rpc_server_requests_total{{{labels}="OK"}} 2.0',
        f'rpc_server_requests_total{{{labels}="ABORTED"}} 1.0',
    ]
    unpublish()


def test_durations_are_a_histogram() -> None:
    telemetry = InMemoryTelemetry().telemetry
    measures = CallMetrics()
    unpublish = measures.publish(telemetry)
    record = measures.of("a.B/C")
    for duration_s in (0.0005, 0.002, 40.0):
        record(grpc.StatusCode.OK, duration_s)
    shown = lines(telemetry.metrics_text(), "rpc_server_call_duration_seconds")
    labels = 'rpc_method="a.B/C",rpc_response_status_code="OK"'
    name = "rpc_server_call_duration_seconds"
    assert f'{name}_bucket{{le="0.001",{labels}}} 1.0' in shown
    assert f'{name}_bucket{{le="0.0025",{labels}}} 2.0' in shown
    assert f'{name}_bucket{{le="+Inf",{labels}}} 3.0' in shown
    assert f"{name}_count{{{labels}}} 3.0" in shown
    assert f"{name}_sum{{{labels}}} 40.0025" in shown
    unpublish()
    assert lines(telemetry.metrics_text(), name) == []
