"""Statements by what they do, how long they took, and the trace they belong to."""

import pytest
from opentelemetry.trace import SpanKind

from parley.telemetry import InMemoryTelemetry, Statements, summary_of

SUMMARIES = {
    "SELECT 1": "SELECT",
    "": "?",
    "SELECT a FROM chat.chats c JOIN chat.chat_exec e ON true": (
        "SELECT chat.chats SELECT chat.chat_exec"
    ),
    "insert into chat.files (id) values ($1)": "INSERT chat.files",
    "DELETE FROM chat.files WHERE name = 'update chat.x'": "DELETE chat.files UPDATE chat.x",
    "-- drop\nUPDATE chat.workers SET a = 1 /* FROM here */": "UPDATE chat.workers",
    "WITH guard AS (UPDATE chat.chat_exec SET a = 1 RETURNING b) SELECT b FROM guard": (
        "UPDATE chat.chat_exec"
    ),
    "SELECT 1 FROM a FOR UPDATE": "SELECT a",
    "INSERT INTO a (b) VALUES (1) ON CONFLICT DO UPDATE SET b = 2": "INSERT a",
}


@pytest.mark.parametrize("text", SUMMARIES)
def test_a_statement_is_called_by_what_it_does_to_which_tables(text: str) -> None:
    assert summary_of(text) == SUMMARIES[text]


def test_a_statement_is_measured_under_the_operation_that_ran_it() -> None:
    memory = InMemoryTelemetry()
    statements = Statements(memory.telemetry, lambda: "chat.ChatService/GetChat")
    for _ in range(2):
        with statements.observed("SELECT a FROM chat.chats WHERE id = $1") as sent:
            assert sent == "SELECT a FROM chat.chats WHERE id = $1"
    line = (
        'db_client_operation_duration_seconds_count{db_query_summary="SELECT chat.chats",'
        'operation="chat.ChatService/GetChat"} 2.0'
    )
    assert line in memory.telemetry.metrics_text().splitlines()


def test_the_trace_goes_on_into_the_statement_and_its_span_says_what_ran() -> None:
    memory = InMemoryTelemetry()
    statements = Statements(memory.telemetry, lambda: "")
    with (
        memory.telemetry.tracer.start_as_current_span("request"),
        statements.observed("SELECT a FROM chat.chats WHERE id = 'secret'") as sent,
    ):
        pass
    (span, request) = memory.spans()
    context = span.get_span_context()
    assert context is not None
    assert span.parent == request.get_span_context()
    assert (span.name, span.kind) == ("SELECT chat.chats", SpanKind.CLIENT)
    assert span.attributes == {
        "db.system.name": "postgresql",
        "db.query.summary": "SELECT chat.chats",
    }
    ids = f"{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    assert sent.endswith(f" /*traceparent='00-{ids}'*/")


def test_a_statement_that_fails_is_measured_too() -> None:
    memory = InMemoryTelemetry()
    statements = Statements(memory.telemetry, lambda: "")
    with (
        pytest.raises(ValueError, match="no"),
        memory.telemetry.tracer.start_as_current_span("request"),
        statements.observed("SELECT a FROM b"),
    ):
        raise ValueError("no")
    (span, _) = memory.spans()
    assert [event.name for event in span.events] == ["exception"]
    assert 'summary="SELECT b",operation=""} 1.0' in memory.telemetry.metrics_text()


def test_texts_without_end_do_not_fill_the_memory() -> None:
    memory = InMemoryTelemetry()
    statements = Statements(memory.telemetry, lambda: "")
    for number in range(1100):
        with statements.observed(f"SELECT {number} FROM a"):
            pass
    assert 'summary="SELECT a",operation=""} 1100.0' in memory.telemetry.metrics_text()
