"""What a server counts: every call by method and status, and how long it took.

An OpenTelemetry histogram costs a call more than identity, deadline and trace together, because it
cleans and hashes the attributes of every measurement. The attributes here are known beforehand, so
calls only add to plain numbers: the meter reads the counts and the metrics registry the histogram
when someone asks for them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import grpc
from opentelemetry.metrics import CallbackOptions, Observation
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from parley.telemetry import Telemetry

REQUESTS: Final = "rpc.server.requests"
DURATION: Final = "rpc_server_call_duration_seconds"
BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

Record = Callable[[grpc.StatusCode, float], None]


class _Series:
    """The calls of one method that ended with one status."""

    __slots__ = ("attributes", "buckets", "total_s")

    def __init__(self, method: str, status: grpc.StatusCode) -> None:
        self.attributes = {"rpc.method": method, "rpc.response.status_code": status.name}
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.total_s = 0.0


class Measures(Collector):
    """The calls of one server, by method and status."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, grpc.StatusCode], _Series] = {}

    def of(self, method: str) -> Record:
        """Return the function that records a call of `method` with its status and duration."""
        series: dict[grpc.StatusCode, _Series] = {}

        def record(status: grpc.StatusCode, duration_s: float) -> None:
            found = series.get(status)
            if found is None:
                found = series[status] = self._series[method, status] = _Series(method, status)
            found.buckets[bisect_left(BUCKETS_S, duration_s)] += 1
            found.total_s += duration_s

        return record

    def publish(self, telemetry: Telemetry) -> Callable[[], None]:
        """Show the numbers wherever this process shows its own; return what ends that."""
        telemetry.meter.create_observable_counter(
            REQUESTS,
            callbacks=[self._requests],
            unit="{call}",
            description="Calls served, by method and status.",
        )
        telemetry.registry.register(self)
        return lambda: telemetry.registry.unregister(self)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Return the durations for the metrics registry."""
        labels = ("rpc_method", "rpc_response_status_code")
        text = "How long calls took to serve, by method and status."
        family = HistogramMetricFamily(DURATION, text, labels=labels)
        for series in tuple(self._series.values()):
            family.add_metric(
                tuple(series.attributes.values()), _cumulative(series.buckets), series.total_s
            )
        yield family

    def _requests(self, options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(sum(series.buckets), series.attributes)
            for series in tuple(self._series.values())
        ]


def _cumulative(buckets: list[int]) -> list[tuple[str, int]]:
    bounds = (*map(str, BUCKETS_S), "+Inf")
    return [(bound, sum(buckets[: place + 1])) for place, bound in enumerate(bounds)]
