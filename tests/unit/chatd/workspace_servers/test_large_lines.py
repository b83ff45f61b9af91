"""Large lines: reduced to few values, and the same messages otherwise."""

import json
from typing import Any

import pytest

from chatd.workspace_servers.clients.reduce_line import readable
from chatd.workspace_servers.clients.server_results import PARTS_MAX, call_result
from chatd.workspace_servers.domain import large_lines, messages, tools
from chatd.workspace_servers.domain.large_lines import reduced
from chatd.workspace_servers.domain.messages import Answer, Progress, Request, ToolsChanged

LINE_BYTES = 8 * 1024 * 1024
#: Far fewer than a line can hold, and decoded in a few milliseconds.
VALUES_MAX = 100_000
NOISE: list[list[int]] = [[] for _ in range(1000)]

ARGUMENTS = [{"name": "who", "description": "Whom.", "required": True}]


def line_of(**document: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **document}).encode()


def values_in(value: Any) -> int:
    """Return how many values a document holds."""
    inside = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)):
        return 1
    return 1 + sum(map(values_in, inside))


@pytest.mark.parametrize(
    "document",
    [
        {"id": 1, "result": {"content": [{"type": "text", "text": "a"}, {"type": "image"}]}},
        {"id": 1, "result": {"content": [{"type": "resource", "resource": {"uri": "a"}}]}},
        {"id": 1, "result": {"structuredContent": {"a": [1, 2]}, "isError": True}},
        {"id": 1, "result": {"resources": [{"uri": "a", "name": "b"}], "nextCursor": "2"}},
        {"id": 1, "result": {"prompts": [{"name": "a", "arguments": ARGUMENTS}]}},
        {
            "id": 1,
            "result": {"contents": [{"uri": "a", "text": "b"}, {"uri": "c", "blob": "AA=="}]},
        },
        {"id": 1, "result": {"messages": [{"role": "user", "content": {"type": "text"}}]}},
        {"id": 1, "error": {"code": 1, "message": "no"}},
        {"id": "a", "method": "ping"},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 2}},
        {"method": "notifications/tools/list_changed"},
        {"id": 2, "result": {"nextCursor": "b", "instructions": "c", "tools": []}},
    ],
    ids=lambda each: str(next(iter(each.get("result", each)))),
)
def test_a_reduced_line_is_the_same_message(document: dict[str, Any]) -> None:
    more = {"_meta": {"noise": NOISE}}
    line = line_of(**{key: _with(value, more) for key, value in document.items()}, noise=NOISE)
    expected = messages.received(line_of(**document))
    assert expected is not None
    assert isinstance(expected, Answer | Request | Progress | ToolsChanged)
    assert messages.received(reduced(line)) == expected


def _with(value: Any, more: dict[str, Any]) -> Any:
    return {**value, **more} if isinstance(value, dict) else value


HOSTILE = {
    "values besides": b'{"id":1,"result":{"x":[%s]}}',
    "parts": b'{"id":1,"result":{"content":[%s]}}',
    "parts of a part": b'{"id":1,"result":{"content":[{"type":"text","text":"a","x":[%s]}]}}',
    "structured": b'{"id":1,"result":{"structuredContent":{"x":[%s]}}}',
    "tools": b'{"id":1,"result":{"tools":[%s]}}',
    "schema": b'{"id":1,"result":{"tools":[{"name":"a","inputSchema":{"x":[%s]}}]}}',
    "params": b'{"method":"notifications/progress","params":{"x":[%s]}}',
}


@pytest.mark.slow
@pytest.mark.parametrize("place", HOSTILE)
def test_a_reduced_line_has_few_values_wherever_they_were(place: str) -> None:
    frame = HOSTILE[place]
    line = frame % (b"{}," * ((LINE_BYTES - len(frame)) // 3))[:-1]
    kept = reduced(line)
    # Quotation marks of structured content are escaped when it becomes text.
    assert 0 < len(kept) <= len(line) + LINE_BYTES // 100
    assert values_in(json.loads(kept)) < VALUES_MAX


def test_parts_that_are_cut_are_counted() -> None:
    line = line_of(id=1, result={"content": [{"type": "text", "text": "a"}] * 300})
    answer = messages.received(reduced(line))
    assert isinstance(answer, Answer)
    result = call_result(answer.result)
    assert len(result.parts) == PARTS_MAX
    assert result.parts[-1].text.text == "[45 more parts were cut]"


def test_large_structured_content_becomes_text() -> None:
    answer = messages.received(
        reduced(line_of(id=1, result={"structuredContent": {"a": "x" * 100_000}}))
    )
    assert isinstance(answer, Answer)
    (part,) = call_result(answer.result).parts
    assert json.loads(part.text.text) == {"a": "x" * 100_000}


def test_a_line_that_is_too_deep_is_read_without_the_deep_value() -> None:
    deep = b'{"x":' * 5000 + b"1" + b"}" * 5000
    line = b'{"id":1,"result":{"tools":[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":%s}'
    line = line % deep + b"]}}"
    answer = messages.received(readable(line))
    assert isinstance(answer, Answer)
    assert (messages.received(line), messages.is_too_deep(line)) == (None, True)
    assert [tool.name for tool in tools.listed_tools(answer.result["tools"])] == ["a"]


@pytest.mark.parametrize("line", [b"noise", b"[" * 300, b'{"a":' + b"{}" * 300, b"{}"])
def test_a_line_that_is_only_no_message_is_not_too_deep(line: bytes) -> None:
    assert not messages.is_too_deep(line)


@pytest.mark.parametrize("line", [b"noise", b"[1, 2]", b"[" * 1_000_000, b'"\xff"'])
def test_what_is_no_message_is_empty(line: bytes) -> None:
    assert reduced(line) == b""


def test_the_bounds_are_those_of_what_is_read() -> None:
    assert (large_lines.PARTS_MAX, large_lines.TOOLS_MAX) == (PARTS_MAX, tools.ENTRIES_MAX)
    assert large_lines.SCHEMAS_BYTES_MAX == tools.SCHEMAS_BYTES_MAX
    assert large_lines.DESCRIPTION_CHARACTERS_MAX == tools.DESCRIPTION_CHARACTERS_MAX
