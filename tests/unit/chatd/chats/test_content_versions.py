import json
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.chats.store.codec import CONTENT_VERSION, content_of, parts_from_json, parts_to_json
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.store.legacy import UnreadableContent, legacy_parts


def test_no_part_of_today_can_look_like_an_envelope() -> None:
    for part in get_args(Part):
        assert "data" not in {field.encode_name for field in msgspec.structs.fields(part)}


@pytest.mark.parametrize(
    ("role", "content", "parts"),
    [
        (Role.SYSTEM, "be brief", (Text("be brief"),)),
        (Role.USER, "hello", (Text("hello"),)),
        (Role.USER, [{"type": "text", "data": {"text": "hello"}}], (Text("hello"),)),
        (Role.USER, [{"type": "text", "text": "hello"}], (Text("hello"),)),
        (
            Role.ASSISTANT,
            [
                {"type": "text", "data": {"text": "let me see"}},
                {
                    "type": "tool-call",
                    "data": {"tool_call_id": "c1", "tool_name": "execute", "input": '{"a":1}'},
                },
            ],
            (Text("let me see"), ToolCall("c1", "execute", '{"a":1}')),
        ),
        (
            Role.ASSISTANT,
            [{"type": "tool-call", "tool_call_id": "c1", "tool_name": "x", "args": {"a": 1}}],
            (ToolCall("c1", "x", '{"a": 1}'),),
        ),
        (
            Role.TOOL,
            [{"tool_call_id": "c1", "tool_name": "x", "result": {"ok": 1}, "is_error": False}],
            (ToolResult("c1", "x", '{"ok": 1}', ToolOutcome.DONE),),
        ),
        (
            Role.TOOL,
            [{"type": "tool-result", "tool_call_id": "c1", "result": "no", "is_error": True}],
            (ToolResult("c1", "", '"no"', ToolOutcome.FAILED),),
        ),
    ],
)
def test_every_shape_of_version_0_is_read(
    role: Role, content: object, parts: tuple[Part, ...]
) -> None:
    assert content_of(json.dumps(content), 0, role) == parts


@pytest.mark.parametrize("content", [3, {"a": 1}, ["x"], [{"type": "hologram", "text": "?"}]])
def test_a_shape_that_was_never_written_is_refused(content: object) -> None:
    with pytest.raises(UnreadableContent):
        legacy_parts(json.dumps(content), Role.USER)


def test_a_version_of_the_future_is_refused() -> None:
    with pytest.raises(UnreadableContent) as refusal:
        content_of("[]", CONTENT_VERSION + 1, Role.USER)
    assert refusal.value.version == CONTENT_VERSION + 1


@given(st.text())
def test_every_text_comes_back_nul_and_marks_included(text: str) -> None:
    clean = text.encode("utf-8", "replace").decode()
    stored = parts_to_json((Text(clean),))
    assert "\\u0000" not in stored.replace("\\\\", "")
    assert parts_from_json(stored) == (Text(clean),)


@pytest.mark.parametrize("text", ["\x00", "\ue000", "\ue000\ue001", "\\u0000", "a\x00\ue000\x00\\"])
def test_nul_survives_next_to_everything_that_looks_like_its_mark(text: str) -> None:
    assert parts_from_json(parts_to_json((Text(text),))) == (Text(text),)
