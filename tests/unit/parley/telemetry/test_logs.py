"""Log lines: their fields, their trace ids, and what never gets into them."""

import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.telemetry import InMemoryTelemetry, LogFormat, LogLevel, Redactor
from parley.telemetry.logs import JsonFormatter, TextFormatter, logging_to_stderr

CANARY = "canary-7f3a91"
AT = 1767225600.25


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("chatd.turn", logging.WARNING, "/x.py", 7, message, args, None)
    made.created = AT
    vars(made).update(extra)
    return made


def failing(message: str) -> logging.LogRecord:
    made = record("it failed")
    try:
        raise ValueError(message)
    except ValueError:
        made.exc_info = sys.exc_info()
    return made


def json_line(made: logging.LogRecord, redactor: Redactor | None = None) -> dict[str, Any]:
    line = JsonFormatter("chatd", "chatd-1", redactor or Redactor()).format(made)
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def text(made: logging.LogRecord, redactor: Redactor | None = None) -> str:
    return TextFormatter("chatd", redactor or Redactor()).format(made)


def test_a_json_line_has_every_field() -> None:
    assert json_line(record("leased %d", 3, chat_id="c-1", took_s=0.5)) == {
        "time": "2026-01-01T00:00:00.250+00:00",
        "level": "warning",
        "service": "chatd",
        "instance": "chatd-1",
        "logger": "chatd.turn",
        "message": "leased 3",
        "chat_id": "c-1",
        "took_s": 0.5,
    }


def test_a_text_line_reads_from_left_to_right() -> None:
    assert text(record("leased %d", 3, chat_id="c-1")) == (
        "2026-01-01T00:00:00.250+00:00 WARNING chatd chatd.turn: leased 3 chat_id=c-1"
    )


def test_both_formats_carry_the_current_trace() -> None:
    tracer = InMemoryTelemetry().telemetry.tracer
    with tracer.start_as_current_span("turn") as span:
        context = span.get_span_context()
        line, words = json_line(record("x")), text(record("x"))
    trace_id, span_id = f"{context.trace_id:032x}", f"{context.span_id:016x}"
    assert (line["trace_id"], line["span_id"]) == (trace_id, span_id)
    assert words.endswith(f"x trace_id={trace_id} span_id={span_id}")


def test_extra_fields_cannot_take_the_place_of_the_standard_ones() -> None:
    assert json_line(record("x", service="evil", level="evil"))["service"] == "chatd"


def test_an_exception_is_part_of_the_record() -> None:
    assert json_line(failing("boom"))["exception"].endswith("ValueError: boom")
    assert text(failing("boom")).endswith("\nValueError: boom")


def test_a_line_break_or_an_escape_in_a_message_stays_on_its_line() -> None:
    assert text(record("a\nb\x1b[31m", chat_id="c\r\nd")).endswith(r"a\nb\x1b[31m chat_id=c\r\nd")


@pytest.mark.parametrize("format_of", [lambda *a: json.dumps(json_line(*a)), text])
@pytest.mark.parametrize(
    "made",
    [
        record(f"message {CANARY}"),
        record("argument %s", CANARY),
        record("extra", token=CANARY),
        record("nested", value={"deep": [CANARY]}),
        failing(f"exception {CANARY}"),
    ],
)
def test_no_part_of_a_record_shows_a_registered_secret(
    format_of: Callable[..., str], made: logging.LogRecord
) -> None:
    redactor = Redactor()
    redactor.register(CANARY)
    line = format_of(made, redactor)
    assert CANARY not in line
    assert "[redacted]" in line


def test_a_secret_of_several_lines_is_found_in_both_formats() -> None:
    secret = 'first "line"\nsecond\\line'
    redactor = Redactor()
    redactor.register(secret)
    assert json_line(record("<%s>", secret), redactor)["message"] == "<[redacted]>"
    assert text(record("<%s>", secret), redactor).endswith("<[redacted]>")


def test_a_value_json_cannot_say_is_written_as_text() -> None:
    assert json_line(record("x", where={1}))["where"] == "{1}"


@given(
    secret=st.text('0123456789abcdef"\\\n', min_size=6, max_size=12),
    value=st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
)
def test_a_json_line_is_json_whatever_is_logged_and_whatever_is_secret(
    secret: str, value: object
) -> None:
    redactor = Redactor()
    redactor.register(secret)
    assert json_line(record("%s", value, value=value), redactor)["logger"] == "chatd.turn"


def install(level: LogLevel) -> Any:
    return logging_to_stderr(
        "chatd", instance="1", level=level, form=LogFormat.JSON, redactor=Redactor()
    )


def test_the_root_logger_writes_each_line_once_and_is_left_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = logging.getLogger()
    before = (root.handlers, root.level)
    with install(LogLevel.DEBUG), install(LogLevel.WARNING):
        logging.getLogger("some.room").info("too quiet")
        logging.getLogger("some.room").warning("once")

    lines = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["once"]
    assert (root.handlers, root.level) == before


def test_a_record_that_cannot_be_written_does_not_show_its_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with install(LogLevel.INFO):
        logging.getLogger().handlers[-1].handle(record("%d", CANARY))

    assert capsys.readouterr().err == "a log record from /x.py:7 could not be written\n"
