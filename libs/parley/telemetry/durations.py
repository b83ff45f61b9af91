"""Histograms as plain counters that a scraper reads: of durations, and of other values.

An OpenTelemetry histogram cleans and hashes its attributes at every measurement, which costs more
than much of the measured code. Here repeated labels are resolved once, and recording only adds.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Series:
    """The values recorded with one set of label values."""

    __slots__ = ("_bounds", "_buckets", "_total", "values")

    def __init__(self, values: tuple[str, ...], bounds: tuple[float, ...]) -> None:
        self.values = values
        self._bounds = bounds
        self._buckets = [0] * (len(bounds) + 1)
        self._total = 0.0

    @property
    def count(self) -> int:
        """The number of recorded values."""
        return sum(self._buckets)

    def record(self, value: float) -> None:
        """Record one value."""
        self._buckets[bisect_left(self._bounds, value)] += 1
        self._total += value

    def add_to(self, family: HistogramMetricFamily) -> None:
        """Add the counts to a metric family as one histogram."""
        bounds = (*map(str, self._bounds), "+Inf")
        cumulative = [
            (bound, sum(self._buckets[: place + 1])) for place, bound in enumerate(bounds)
        ]
        family.add_metric(self.values, cumulative, self._total)


class Histograms(Collector):
    """The values of one metric, by labels.

    Args:
        name: The name of the metric.
        text: What it means.
        labels: The names of its labels.
        bounds: The upper bounds of its buckets, ascending.
    """

    def __init__(
        self, name: str, text: str, labels: tuple[str, ...], bounds: tuple[float, ...]
    ) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._bounds = bounds
        self._series: dict[tuple[str, ...], Series] = {}

    def of(self, *values: str) -> Series:
        """Return the series with these label values; keep the result where it is used often."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = Series(values, self._bounds)
        return series

    @property
    def series(self) -> tuple[Series, ...]:
        """Every series recorded so far."""
        return tuple(self._series.values())

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield the histogram for the metrics registry."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for series in self.series:
            series.add_to(family)
        yield family


class Durations(Histograms):
    """The durations of one metric in seconds, by labels."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...]) -> None:
        super().__init__(name, text, labels, BUCKETS_S)
