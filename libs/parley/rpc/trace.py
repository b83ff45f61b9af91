"""The trace of a call that nobody records, at the price of a call without one."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext

EMPTY: Final = Context()

Read = Callable[[Mapping[str, Any]], SpanContext]

# The last digit of W3C's flags is even when the caller does not record.
_EVEN: Final = frozenset("02468aceACE")


def is_unsampled(metadata: Mapping[str, Any]) -> bool:
    """Tell whether the caller has a trace and decided not to record it."""
    traceparent = metadata.get("traceparent")
    return traceparent is not None and traceparent[-1:] in _EVEN


class RemoteSpan(NonRecordingSpan):
    """The caller's span, read from the metadata only when its ids are asked for.

    Logs, errors and outgoing calls ask; most calls have none of these and save the parsing.
    """

    def __init__(self, read: Read, metadata: Mapping[str, Any]) -> None:
        # The base only keeps the ids, which are not known yet.
        self._read = read
        self._metadata = metadata
        self._ids: SpanContext | None = None

    def get_span_context(self) -> SpanContext:
        """Return the ids, which from now on stay the same."""
        if self._ids is None:
            self._ids = self._read(self._metadata)
        return self._ids
