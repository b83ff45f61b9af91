"""Log lines as text or JSON, with trace ids and with secrets redacted."""

import json
import logging
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.trace import format_span_id, format_trace_id

from parley.telemetry.redaction import Redactor, on_one_line


class LogLevel(StrEnum):
    """The least severe level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """The format of log lines: for people or for programs."""

    TEXT = "text"
    JSON = "json"


# Attributes of every record; the remaining ones came from `extra`.
STANDARD_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
}


AUDIT: Final = logging.getLogger("parley.audit")

# Libraries whose INFO messages are not useful here; their warnings are still logged.
VERBOSE_LIBRARIES: Final = ("alembic", "httpx2", "mcp")


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def __init__(self, service: str, instance: str, redactor: Redactor) -> None:
        super().__init__()
        self._service = service
        self._instance = instance
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for `record`.

        Its parts are redacted one by one: redacting the finished line could break the JSON.
        """
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "service": self._service,
            "instance": self._instance,
            "logger": record.name,
            "message": record.getMessage(),
            **_trace_ids(),
        }
        for name, value in _extra_fields(record).items():
            line.setdefault(name, value)
        if exception := _exception_text(self, record):
            line["exception"] = exception
        return json.dumps(_clean(line, self._redactor), ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """One line per record, and the traceback below it."""

    def __init__(self, service: str, redactor: Redactor) -> None:
        super().__init__()
        self._service = service
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Return the text for `record`, redacted as a whole."""
        fields = {**_extra_fields(record), **_trace_ids()}
        head = " ".join(
            [
                _time(record),
                f"{record.levelname:<7}",
                self._service,
                f"{record.name}:",
                on_one_line(record.getMessage()),
                *[f"{name}={on_one_line(str(value))}" for name, value in fields.items()],
            ]
        )
        exception = _exception_text(self, record)
        return self._redactor.clean(f"{head}\n{exception}" if exception else head)


@contextmanager
def logging_to_stderr(
    service: str, *, instance: str, level: LogLevel, form: LogFormat, redactor: Redactor
) -> Iterator[None]:
    """Write the records of the root logger to standard error while the context is open.

    The handler of an outer context is removed meanwhile, so that no line is written twice.
    """
    handler = _LineHandler(sys.stderr)
    match form:
        case LogFormat.JSON:
            handler.setFormatter(JsonFormatter(service, instance, redactor))
        case LogFormat.TEXT:
            handler.setFormatter(TextFormatter(service, redactor))
    root = logging.getLogger()
    handlers_before, level_before = root.handlers, root.level
    root.handlers = [
        *(other for other in handlers_before if not isinstance(other, _LineHandler)),
        handler,
    ]
    root.setLevel(level.upper())
    chatty = [logging.getLogger(name) for name in VERBOSE_LIBRARIES]
    chatty_before = [logger.level for logger in chatty]
    for logger in chatty:
        logger.setLevel(max(root.level, logging.WARNING))
    try:
        yield
    finally:
        root.handlers = handlers_before
        root.setLevel(level_before)
        for logger, before in zip(chatty, chatty_before, strict=True):
            logger.setLevel(before)


class _LineHandler(logging.StreamHandler[Any]):
    """The handler this module installs; a class of its own, so that it can be recognised."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        """Write that a record was lost; logging's own report would contain unredacted arguments."""
        place = f"{record.pathname}:{record.lineno}"
        with suppress(OSError, ValueError):
            sys.stderr.write(f"a log record from {place} could not be written\n")


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _trace_ids() -> Mapping[str, str]:
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {
        "trace_id": format_trace_id(context.trace_id),
        "span_id": format_span_id(context.span_id),
    }


def _extra_fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in STANDARD_ATTRIBUTES}


def _exception_text(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    # The text is not stored on the record, where another handler would find it unredacted.
    parts = []
    if record.exc_info and record.exc_info[0] is not None:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join(parts)


def _clean(value: object, redactor: Redactor) -> object:
    """Return `value` as JSON-compatible data with secrets redacted, also in names and numbers."""
    match value:
        case None | bool():
            return value
        case int() | float():
            text = redactor.clean(str(value))
            return value if text == str(value) and math.isfinite(value) else text
        case Mapping():
            return {
                redactor.clean(str(name)): _clean(item, redactor) for name, item in value.items()
            }
        case list() | tuple():
            return [_clean(item, redactor) for item in value]
        case _:
            return redactor.clean(str(value))


def audit(action: str, *, user_id: str, **facts: object) -> None:
    """Record a security-relevant action of a user in the log, never the value of a secret.

    Args:
        action: The action as `thing.done`, such as `provider.origin_changed`.
        user_id: The user who did it.
        facts: Further facts for the reader; never the value of a key or secret.
    """
    # Logged as a warning, so that installations with a high log level keep it.
    AUDIT.warning("audit", extra={"event": "audit", "action": action, "user_id": user_id, **facts})
