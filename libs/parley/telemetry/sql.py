"""Telemetry of SQL statements: duration, the operation they serve, and the trace they belong to.

A statement is named by its operations and tables, as in the query summary of the semantic
conventions: "INSERT chat.chats SELECT chat.workers". Its values are never recorded. The trace is
sent to the server as a comment, so that the server's log and pg_stat_activity show the request;
only for traces that are recorded, because such a text is prepared again each time.
"""

import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

from opentelemetry.semconv.attributes.db_attributes import (
    DB_QUERY_SUMMARY,
    DB_SYSTEM_NAME,
    DbSystemNameValues,
)
from opentelemetry.trace import Span, SpanKind, get_current_span
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from parley.telemetry.telemetry import Telemetry

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


DURATION: Final = "db_client_operation_duration_seconds"
TEXTS_MAX: Final = 1000
SUMMARY_CHARACTERS_MAX: Final = 255

_STEP: Final = re.compile(
    r"\b(?:(insert)\s+into|(update)(?!\s+set\b)|(delete)\s+from|(?:(?<!delete )from|join))"
    r"\s+([a-z_][\w.]*)",
    re.IGNORECASE,
)
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_CTE: Final = re.compile(r"([a-z_]\w*)\s+as\s+(?:not\s+)?(?:materialized\s+)?\(", re.IGNORECASE)
_FIRST_WORD: Final = re.compile(r"\s*([a-z]+)", re.IGNORECASE)


class Statements:
    """The statements of one process.

    Args:
        telemetry: Receives the durations and spans.
        operation: Returns the operation being served; empty for work of the process itself.
    """

    def __init__(self, telemetry: Telemetry, operation: Callable[[], str]) -> None:
        self._tracer = telemetry.tracer
        self._operation = operation
        self._durations = Durations(
            DURATION,
            "How long statements took, by what they do and the call that was served.",
            ("db_query_summary", "operation"),
        )
        self._by_text: dict[tuple[str, str], Series] = {}
        telemetry.registry.register(self._durations)

    def observed(self, text: str) -> "Observation":
        """Measure and trace a statement; yield the text to send in its place."""
        traced = self._traced(text) if get_current_span().is_recording() else None
        return Observation(text, traced, self._series(text))

    def _traced(self, text: str) -> Span:
        summary = summary_of(text)
        attributes = {
            DB_SYSTEM_NAME: DbSystemNameValues.POSTGRESQL.value,
            DB_QUERY_SUMMARY: summary,
        }
        return self._tracer.start_span(summary, kind=SpanKind.CLIENT, attributes=attributes)

    def _series(self, text: str) -> Series:
        operation = self._operation()
        series = self._by_text.get((text, operation))
        if series is None:
            series = self._durations.of(summary_of(text), operation)
            if len(self._by_text) < TEXTS_MAX:
                self._by_text[text, operation] = series
        return series


class Observation(AbstractContextManager[str]):
    """One statement in progress."""

    __slots__ = ("_series", "_span", "_started_s", "_text")

    def __init__(self, text: str, span: Span | None, series: Series) -> None:
        self._text = text
        self._span = span
        self._series = series

    def __enter__(self) -> str:
        self._started_s = time.perf_counter()
        if self._span is None:
            return self._text
        return f"{self._text} /*traceparent='{_traceparent(self._span)}'*/"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._series.record(time.perf_counter() - self._started_s)
        if self._span is not None:
            if error is not None:
                self._span.record_exception(error)
            self._span.end()


def summary_of(text: str) -> str:
    """Return the operations and tables of a statement, each once, in the order of its text."""
    text = _COMMENT.sub(" ", text)
    own_names = {name.lower() for name in _CTE.findall(text)}
    steps: dict[str, None] = {}
    for insert, update, delete, table in _STEP.findall(text):
        if table.lower() not in own_names:
            steps[f"{(insert or update or delete or 'select').upper()} {table}"] = None
    if not steps:
        first = _FIRST_WORD.match(text)
        return first[1].upper() if first else "?"
    return " ".join(steps)[:SUMMARY_CHARACTERS_MAX]


def _traceparent(span: Span) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
