"""Telemetry of SQL statements: duration, the operation they serve, and the trace they belong to.

A statement is named by its operations and tables, as in the query summary of the semantic
conventions: "INSERT chat.chats SELECT chat.workers". Its values are never recorded. The trace is
sent to the server as a comment, so that the server's log and pg_stat_activity show the request;
only for traces that are recorded, because such a text is prepared again each time.
"""

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

from opentelemetry.semconv.attributes.db_attributes import (
    DB_QUERY_SUMMARY,
    DB_SYSTEM_NAME,
    DbSystemNameValues,
)
from opentelemetry.trace import Span, SpanKind, get_current_span

from parley.telemetry.durations import Durations, Series
from parley.telemetry.telemetry import Telemetry

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
