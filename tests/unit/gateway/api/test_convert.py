import json
from datetime import UTC, datetime
from typing import Any

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.api.events import event_to_json
from gateway.api.json_output import converter_of, to_json
from parley.api.chat.v1 import chat_pb2, event_pb2, message_pb2


def timestamp(second: int) -> Timestamp:
    moment = Timestamp()
    moment.FromDatetime(datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC))
    return moment


def name_of(user_id: str) -> str:
    return ""


def as_sent(document: object) -> Any:
    return json.loads(msgspec.json.encode(document))


def test_a_chat_shows_every_field_of_the_contract() -> None:
    failed = chat_pb2.ChatError(
        message="Too many requests.",
        kind=chat_pb2.ERROR_KIND_RATE_LIMIT,
        provider="scripted",
        status_code=429,
        retryable=True,
        attempts=3,
        next_step="Send it again.",
    )
    chat = chat_pb2.Chat(
        id="c",
        etag="7-ab",
        archives_at=timestamp(11),
        purges_at=timestamp(12),
        root_chat_id="c",
        owner_id="u",
        title="Greetings",
        status=chat_pb2.CHAT_STATUS_REQUIRES_ACTION,
        last_error=failed,
        retry=chat_pb2.RetryState(attempt=2, delay_ms=1500, retrying_at=timestamp(9), error=failed),
        versions=chat_pb2.Versions(snapshot=7, history=5, queue=4, retry=6, generation_attempt=2),
        queue_length=1,
        model_id="m",
        reasoning_effort=chat_pb2.REASONING_EFFORT_XHIGH,
        mode=chat_pb2.CHAT_MODE_PLAN,
        mcp_server_ids=["s"],
        labels={"k": "v"},
        created_at=timestamp(1),
        updated_at=timestamp(2),
        client_tools=[chat_pb2.ClientTool(name="ask", input_schema_json='{"type": "object"}')],
        required_action=chat_pb2.RequiredAction(
            tool_calls=[
                chat_pb2.WaitingCall(tool_call_id="t", tool_name="ask", args_json='{"a":1.50}')
            ],
            deadline_at=timestamp(50),
        ),
    )

    assert as_sent(to_json(chat)) == {
        "id": "c",
        "etag": "7-ab",
        "owner_id": "u",
        "owner_name": None,
        "title": "Greetings",
        "status": "requires_action",
        "archived": False,
        "last_error": {
            "message": "Too many requests.",
            "detail": None,
            "kind": "rate_limit",
            "provider": "scripted",
            "status_code": 429,
            "retryable": True,
            "attempts": 3,
            "next_step": "Send it again.",
        },
        "retry": {
            "attempt": 2,
            "delay_ms": 1500,
            "retrying_at": "2026-01-01T00:00:09Z",
            "error": {
                "message": "Too many requests.",
                "detail": None,
                "kind": "rate_limit",
                "provider": "scripted",
                "status_code": 429,
                "retryable": True,
                "attempts": 3,
                "next_step": "Send it again.",
            },
            "fallback_model_id": None,
        },
        "required_action": {
            "tool_calls": [{"tool_call_id": "t", "tool_name": "ask", "args": {"a": 1.5}}],
            "deadline_at": "2026-01-01T00:00:50Z",
            "actions": [],
        },
        "versions": {
            "snapshot": 7,
            "history": 5,
            "queue": 4,
            "retry": 6,
            "generation_attempt": 2,
        },
        "queue_length": 1,
        "place_in_line": 0,
        "parent_chat_id": None,
        "root_chat_id": "c",
        "model_id": "m",
        "fallback_model_id": None,
        "reasoning_effort": "xhigh",
        "mode": "plan",
        "workspace_id": None,
        "mcp_server_ids": ["s"],
        "uses_default_mcp_servers": False,
        "labels": {"k": "v"},
        "pin_order": 0,
        "summary": None,
        "last_turn_summary": None,
        "has_unread": False,
        "shared": False,
        "created_at": "2026-01-01T00:00:01Z",
        "updated_at": "2026-01-01T00:00:02Z",
        "client_tools": [{"name": "ask", "description": "", "input_schema": {"type": "object"}}],
        "diff_status": None,
        "instructions_drifted": False,
        "archives_at": "2026-01-01T00:00:11Z",
        "purges_at": "2026-01-01T00:00:12Z",
        "children": [],
        "child_count": 0,
        "last_read_message_id": 0,
    }


def test_how_the_workspace_of_a_chat_differs_is_shown() -> None:
    status = chat_pb2.DiffStatus(
        branch="main", repositories=1, changed_files=2, added_lines=3, refreshed_at=timestamp(4)
    )

    assert as_sent(to_json(chat_pb2.Chat(diff_status=status)))["diff_status"] == {
        "branch": "main",
        "origin_url": None,
        "repositories": 1,
        "changed_files": 2,
        "added_lines": 3,
        "deleted_lines": 0,
        "refreshed_at": "2026-01-01T00:00:04Z",
    }


def test_a_free_answer_costs_zero_and_an_unpriced_one_null() -> None:
    def cost(usage: message_pb2.Usage) -> object:
        return as_sent(to_json(message_pb2.Message(usage=usage)))["usage"]["cost_micros"]

    assert cost(message_pb2.Usage(cost_micros=0)) == 0
    assert cost(message_pb2.Usage()) is None


def test_a_finished_tool_call_has_arguments_and_a_streaming_one_pieces() -> None:
    finished = message_pb2.ToolCallPart(
        tool_call_id="t", tool_name="read", args_json='{"path":\n "a"}', created_at=timestamp(3)
    )
    streaming = message_pb2.ToolCallPart(tool_call_id="t", tool_name="read", args_delta='{"pa')

    assert as_sent(to_json(message_pb2.Part(tool_call=finished))) == {
        "type": "tool-call",
        "tool_call_id": "t",
        "tool_name": "read",
        "args": {"path": "a"},
        "created_at": "2026-01-01T00:00:03Z",
    }
    assert as_sent(to_json(message_pb2.Part(tool_call=streaming))) == {
        "type": "tool-call",
        "tool_call_id": "t",
        "tool_name": "read",
        "args_delta": '{"pa',
    }


def test_a_result_says_how_the_call_ended() -> None:
    ended = message_pb2.ToolResultPart(outcome=message_pb2.TOOL_OUTCOME_FAILED, is_error=True)
    done = message_pb2.ToolResultPart(outcome=message_pb2.TOOL_OUTCOME_DONE, is_error=False)

    shown = [as_sent(to_json(message_pb2.Part(tool_result=each))) for each in (ended, done)]

    assert [(each["outcome"], each["is_error"]) for each in shown] == [
        ("failed", True),
        ("done", False),
    ]


def test_a_result_shows_the_files_that_the_call_handed_over() -> None:
    file = message_pb2.FilePart(file_id="f", media_type="text/csv", name="a.csv")
    result = message_pb2.ToolResultPart(result_json='"x"', files=[file])

    assert as_sent(to_json(message_pb2.Part(tool_result=result)))["files"] == [
        {"type": "file", "file_id": "f", "media_type": "text/csv", "name": "a.csv"}
    ]


def test_json_is_embedded_on_one_line_with_its_numbers_as_written() -> None:
    call = message_pb2.ToolCallPart(args_json="[1.50,\r\n 12345678901234567890123]")
    shown = to_json(message_pb2.Part(tool_call=call))

    assert msgspec.json.encode(shown).endswith(b'"args":[1.50,12345678901234567890123]}')


def test_arguments_that_are_no_json_are_shown_as_text() -> None:
    call = message_pb2.ToolCallPart(args_json="{oops")

    assert as_sent(to_json(message_pb2.Part(tool_call=call)))["args"] == "{oops"


def test_every_kind_of_part_is_shown() -> None:
    shown = []
    for field in message_pb2.Part.DESCRIPTOR.oneofs_by_name["kind"].fields:
        part = message_pb2.Part()
        getattr(part, field.name).SetInParent()
        shown.append(converter_of(part.DESCRIPTOR)(part))

    assert [None if part is None else part["type"] for part in shown] == [
        "text",
        "reasoning",
        "tool-call",
        "tool-result",
        "source",
        "file",
        "file-reference",
        "context-file",
        "skill",
        "notice",
        "fallback",
    ]


def test_every_kind_of_event_is_shown_under_its_own_name() -> None:
    for field in event_pb2.ChatEvent.DESCRIPTOR.oneofs_by_name["kind"].fields:
        event = event_pb2.ChatEvent()
        getattr(event, field.name).SetInParent()
        if field.name == "message_part":
            event.message_part.part.text.text = "x"
        shown = event_to_json("c", event, name_of)

        assert shown is not None, field.name
        assert (shown[0], shown[1]["type"], shown[1]["chat_id"]) == (field.name, field.name, "c")


def test_an_event_of_a_later_version_is_left_out() -> None:
    assert event_to_json("c", event_pb2.ChatEvent(cursor="1"), name_of) is None


def test_the_queue_comes_whole() -> None:
    queued = chat_pb2.QueuedMessage(
        id="q", created_at=timestamp(4), origin=message_pb2.MESSAGE_ORIGIN_GOAL
    )
    event = event_pb2.ChatEvent(queue_update=event_pb2.QueueEvent(queued_messages=[queued]))

    assert event_to_json("c", event, name_of) == (
        "queue_update",
        {
            "type": "queue_update",
            "chat_id": "c",
            "queued_messages": [
                {
                    "id": "q",
                    "content": [],
                    "model_id": None,
                    "reasoning_effort": None,
                    "created_by": None,
                    "created_by_name": None,
                    "created_at": "2026-01-01T00:00:04Z",
                    "origin": "goal",
                }
            ],
        },
    )
