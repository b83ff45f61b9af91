"""Content that is too large for readers: cut where it is largest, and still what it was."""

import json

import pytest

from chatd.chats.rpc.bounding import bounded
from chatd.chats.rpc.convert import content_to_proto
from chatd.content.domain.parts import (
    FileReference,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)

PICTURE = {"type": "image", "data": "A" * 80_000, "media_type": "image/png"}


def result(result_json: str) -> ToolResult:
    return ToolResult("c", "t", result_json, ToolOutcome.DONE)


def size(part: Part) -> int:
    (shown,) = content_to_proto((part,))
    return shown.ByteSize()


def test_what_fits_is_left_as_it_is() -> None:
    content = (Text("ä" * 100), result('{"a": 1}'))
    assert bounded(content, 1000) is content
    assert bounded(content, 220) is content


def test_only_the_largest_are_cut_and_the_others_stay_whole() -> None:
    small, large = Text("small"), Text("x" * 100_000)
    kept, cut, other = bounded((small, large, Text("y" * 50_000)), 40_000)
    assert kept is small
    assert isinstance(cut, Text)
    assert isinstance(other, Text)
    assert cut.text.startswith("xxx")
    assert "bytes were left out here" in cut.text
    assert len(cut.text) + len(other.text) <= 40_000


@pytest.mark.parametrize(
    "part",
    [
        Text("ü" * 100_000),
        Reasoning("x" * 100_000),
        FileReference("a.py", 1, 2, "x" * 100_000),
        ToolCall("c", "t", json.dumps({"text": "x" * 100_000})),
        result(json.dumps({"output": "x" * 100_000})),
        result(json.dumps({"output": "ok", "content": [PICTURE] * 20})),
        result(json.dumps(["x"] * 50_000)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_every_kind_of_part_fits_and_json_stays_json(part: Part) -> None:
    (cut,) = bounded((part,), 10_000)
    assert type(cut) is type(part)
    assert size(cut) <= 10_200
    match cut:
        case ToolCall(args_json=text) | ToolResult(result_json=text):
            json.loads(text)


def test_pictures_go_before_words() -> None:
    seen = {"success": True, "output": "a cat", "content": [PICTURE]}
    (cut,) = bounded((result(json.dumps(seen)),), 2000)
    assert isinstance(cut, ToolResult)
    assert json.loads(cut.result_json) == seen | {
        "content": [PICTURE | {"data": "", "omitted_bytes": 60_000}]
    }


def test_arguments_that_are_still_being_written_are_cut_as_they_are() -> None:
    (cut,) = bounded((ToolCall("c", "t", '{"text": "' + "x" * 50_000),), 10_000)
    assert isinstance(cut, ToolCall)
    assert cut.args_json == '{"text": "' + "x" * 2490
