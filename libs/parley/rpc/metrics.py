"""Metrics of a server: calls by method and status, and their duration."""

from collections.abc import Callable, Iterable
from typing import Final

import grpc
from opentelemetry.metrics import CallbackOptions, Observation

from parley.telemetry import Durations, Series, Telemetry

REQUESTS: Final = "rpc.server.requests"
DURATION: Final = "rpc_server_call_duration_seconds"

Record = Callable[[grpc.StatusCode, float], None]


class CallMetrics:
    """The calls of one server, by method and status."""

    def __init__(self) -> None:
        self._durations = Durations(
            DURATION,
            "How long calls took to serve, by method and status.",
            ("rpc_method", "rpc_response_status_code"),
        )

    def of(self, method: str) -> Record:
        """Return the function that records a call of `method` with its status and duration."""
        by_status: dict[grpc.StatusCode, Series] = {}

        def record(status: grpc.StatusCode, duration_s: float) -> None:
            series = by_status.get(status)
            if series is None:
                series = by_status[status] = self._durations.of(method, status.name)
            series.record(duration_s)

        return record

    def publish(self, telemetry: Telemetry) -> Callable[[], None]:
        """Register the metrics with the telemetry; return the function that removes them."""
        telemetry.meter.create_observable_counter(
            REQUESTS,
            callbacks=[self._requests],
            unit="{call}",
            description="Calls served, by method and status.",
        )
        telemetry.registry.register(self._durations)
        return lambda: telemetry.registry.unregister(self._durations)

    def _requests(self, options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(series.count, {"rpc.method": method, "rpc.response.status_code": status})
            for series in self._durations.series
            for method, status in (series.values,)
        ]
