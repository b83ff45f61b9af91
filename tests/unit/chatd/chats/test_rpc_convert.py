import typing
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from chatd.chats.domain.chat import Retry
from chatd.chats.rpc.convert import content_to_proto, part_to_proto, retry_to_proto
from chatd.content.domain import parts
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.content.domain.next_steps import WAIT
from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1.message_pb2 import (
    TOOL_OUTCOME_UNKNOWN,
    ContextFilePart,
    FallbackPart,
    FilePart,
    FileReferencePart,
    NoticePart,
    Part,
    ReasoningPart,
    SkillPart,
    SourcePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STAMP = Timestamp(seconds=int(NOON.timestamp()))
SECRET = "inside"

PAIRS: list[tuple[parts.Part, Part]] = [
    (parts.Text("hi", SECRET), Part(text=TextPart(text="hi"))),
    (
        parts.Reasoning("hm", NOON, NOON, SECRET),
        Part(reasoning=ReasoningPart(text="hm", created_at=STAMP, completed_at=STAMP)),
    ),
    (
        parts.ToolCall("c", "run", "{}", "m", True, NOON, SECRET),
        Part(
            tool_call=ToolCallPart(
                tool_call_id="c",
                tool_name="run",
                args_json="{}",
                mcp_server_id="m",
                provider_executed=True,
                created_at=STAMP,
            )
        ),
    ),
    (
        parts.ToolResult(
            "c",
            "run",
            "1",
            parts.ToolOutcome.UNKNOWN,
            "m",
            True,
            NOON,
            SECRET,
            (parts.File("f", "text/csv", "a.csv"),),
        ),
        Part(
            tool_result=ToolResultPart(
                tool_call_id="c",
                tool_name="run",
                result_json="1",
                outcome=TOOL_OUTCOME_UNKNOWN,
                is_error=True,
                mcp_server_id="m",
                provider_executed=True,
                created_at=STAMP,
                files=[FilePart(file_id="f", media_type="text/csv", name="a.csv")],
            )
        ),
    ),
    (
        parts.Source("s", "https://x.test", "X"),
        Part(source=SourcePart(source_id="s", url="https://x.test", title="X")),
    ),
    (
        parts.File("f", "text/plain", "a.txt"),
        Part(file=FilePart(file_id="f", media_type="text/plain", name="a.txt")),
    ),
    (
        parts.FileReference("a.py", 1, 2, "x"),
        Part(
            file_reference=FileReferencePart(
                file_name="a.py", start_line=1, end_line=2, content="x"
            )
        ),
    ),
    (
        parts.ContextFile("AGENTS.md", SECRET, truncated=True),
        Part(context_file=ContextFilePart(path="AGENTS.md", truncated=True)),
    ),
    (
        parts.Skill("swim", "in water", SECRET),
        Part(skill=SkillPart(name="swim", description="in water")),
    ),
    (parts.Notice("note"), Part(notice=NoticePart(text="note"))),
    (
        parts.Notice("note", "policy", "stop"),
        Part(notice=NoticePart(text="note", hook_name="policy", event="stop")),
    ),
    (
        parts.Fallback("a", "b", "overloaded", "busy"),
        Part(
            fallback=FallbackPart(failed_model_id="a", model_id="b", kind="overloaded", text="busy")
        ),
    ),
]


def test_every_kind_of_part_is_shown_without_what_is_inside() -> None:
    shown_types = {type(part) for part, _ in PAIRS}
    assert shown_types == set(typing.get_args(parts.Part)) - {
        parts.HookContext,
        parts.ServerTexts,
    }
    assert {shown.WhichOneof("kind") for _, shown in PAIRS} == {
        field.name for field in Part.DESCRIPTOR.oneofs_by_name["kind"].fields
    }
    assert [part_to_proto(part) for part, _ in PAIRS] == [shown for _, shown in PAIRS]
    assert all(SECRET.encode() not in shown.SerializeToString() for _, shown in PAIRS)


def test_what_no_user_is_shown_is_left_out() -> None:
    added = parts.HookContext("stop", "policy", SECRET), parts.ServerTexts(("server",))
    assert content_to_proto((parts.Text("hello"), *added)) == [Part(text=TextPart(text="hello"))]
    assert [part_to_proto(each) for each in added] == [Part(), Part()]


def test_a_retry_is_shown_with_its_reason() -> None:
    retry = Retry(2, 1500, NOON, TurnError("Slow down.", ErrorKind.RATE_LIMIT))
    assert retry_to_proto(retry) == chat_pb2.RetryState(
        attempt=2,
        delay_ms=1500,
        retrying_at=STAMP,
        error=chat_pb2.ChatError(
            message="Slow down.", kind=chat_pb2.ERROR_KIND_RATE_LIMIT, next_step=WAIT
        ),
    )
