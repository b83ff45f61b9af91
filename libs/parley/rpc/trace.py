"""The trace of a call that is not sampled, at the cost of a call without a trace."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext

EMPTY: Final = Context()

Read = Callable[[Mapping[str, Any]], SpanContext]

# The last digit of W3C's trace flags is even when the caller does not sample.
_EVEN: Final = frozenset("02468aceACE")


def is_unsampled(metadata: Mapping[str, Any]) -> bool:
    """Return whether the caller sent a trace that is not sampled."""
    traceparent = metadata.get("traceparent")
    return traceparent is not None and traceparent[-1:] in _EVEN


class RemoteSpan(NonRecordingSpan):
    """The caller's span, parsed from the metadata only when its ids are needed.

    Logs, errors and outgoing calls need them; most calls have none of these and save the parsing.
    """

    def __init__(self, read: Read, metadata: Mapping[str, Any]) -> None:
        # The base class only stores the ids, which are not parsed yet.
        self._read = read
        self._metadata = metadata
        self._ids: SpanContext | None = None

    def get_span_context(self) -> SpanContext:
        """Return the ids, parsed at the first call."""
        if self._ids is None:
            self._ids = self._read(self._metadata)
        return self._ids
