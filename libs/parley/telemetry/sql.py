"""Spans around database work."""

from contextlib import AbstractContextManager

from opentelemetry.semconv.attributes.db_attributes import (
    DB_NAMESPACE,
    DB_OPERATION_NAME,
    DB_SYSTEM_NAME,
    DbSystemNameValues,
)
from opentelemetry.trace import Span, SpanKind, Tracer


def sql_span(
    tracer: Tracer, name: str, *, namespace: str | None = None
) -> AbstractContextManager[Span]:
    """Return a client span around the statement or transaction called `name`.

    Args:
        tracer: Where the span belongs.
        name: What the code calls it (`lease_next_chat`); never the statement's text, which may
            carry values.
        namespace: The schema it works on.
    """
    attributes = {
        DB_SYSTEM_NAME: DbSystemNameValues.POSTGRESQL.value,
        DB_OPERATION_NAME: name,
    }
    if namespace is not None:
        attributes[DB_NAMESPACE] = namespace
    return tracer.start_as_current_span(name, kind=SpanKind.CLIENT, attributes=attributes)
