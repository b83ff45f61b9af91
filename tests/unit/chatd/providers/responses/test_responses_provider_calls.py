"""Tools that the provider ran itself: stored as call and result, sent back as they came."""

import json
from typing import Any

import pytest

from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.providers.media import ImageContent, TextContent, read_result
from chatd.providers.responses.item_origins import item_origin_of
from chatd.providers.responses.provider_calls import item_of
from support.chatd.providers.responses_events import completed, done, stored, taken

PNG = "iVBORw0KGgo="
WEB_SEARCH: dict[str, Any] = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "weather"},
}
FILE_SEARCH: dict[str, Any] = {
    "type": "file_search_call",
    "id": "fs_1",
    "status": "completed",
    "queries": ["capital"],
    "results": [{"file_id": "file_1", "text": "Paris"}],
}
CODE: dict[str, Any] = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "code": "plot()",
    "container_id": "cntr_1",
    "outputs": [
        {"type": "logs", "logs": "done"},
        {"type": "image", "url": f"data:image/png;base64,{PNG}"},
        {"type": "image", "url": "https://files.example/1"},
    ],
}
IMAGE: dict[str, Any] = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "revised_prompt": "a fox",
    "output_format": "png",
    "result": PNG,
}
MCP_CALL: dict[str, Any] = {
    "type": "mcp_call",
    "id": "mcp_1",
    "name": "ask",
    "server_label": "wiki",
    "arguments": '{"q":1}',
    "output": "an answer",
    "error": None,
}
MCP_TOOLS: dict[str, Any] = {
    "type": "mcp_list_tools",
    "id": "mcpl_1",
    "server_label": "wiki",
    "tools": [{"name": "ask", "input_schema": {}}],
    "error": None,
}
COMPUTER: dict[str, Any] = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "call_1",
    "status": "completed",
    "action": {"type": "click", "x": 1, "y": 2},
    "pending_safety_checks": [],
}
ALL = [WEB_SEARCH, FILE_SEARCH, CODE, IMAGE, MCP_CALL, MCP_TOOLS, COMPUTER]


def decoded(item: dict[str, Any]) -> tuple[ToolCall, ToolResult]:
    call, result = stored(taken(done(0, **item), completed(item)))
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert call.provider_executed
    assert result.provider_executed
    assert (result.tool_call_id, result.tool_name) == (call.tool_call_id, call.tool_name)
    return call, result


@pytest.mark.parametrize("item", ALL, ids=[str(item["type"]) for item in ALL])
def test_an_item_is_made_again_as_it_came(item: dict[str, Any]) -> None:
    call, result = decoded(item)
    mark = item_origin_of(call.provider_metadata)
    assert mark is not None
    assert item_of(mark, result, is_stored=False) == item


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        (WEB_SEARCH, "web_search", {"type": "search", "query": "weather"}),
        (FILE_SEARCH, "file_search", {"queries": ["capital"]}),
        (CODE, "code_interpreter", {"code": "plot()", "container_id": "cntr_1"}),
        (IMAGE, "image_generation", {"revised_prompt": "a fox", "output_format": "png"}),
        (MCP_CALL, "ask", {"q": 1}),
        (MCP_TOOLS, "mcp_list_tools", {"server_label": "wiki"}),
        (COMPUTER, "computer", {"type": "click", "x": 1, "y": 2}),
    ],
)
def test_a_call_has_the_name_and_the_arguments_of_its_tool(
    item: dict[str, Any], name: str, arguments: object
) -> None:
    call, _ = decoded(item)
    told = (call.tool_call_id, call.tool_name, json.loads(call.args_json))
    assert told == (item["id"], name, arguments)


def test_pictures_are_seen_by_everybody_who_reads_results() -> None:
    _, drawn = decoded(IMAGE)
    _, plotted = decoded(CODE)
    assert ImageContent("image/png", PNG) in read_result(drawn.result_json)
    assert read_result(plotted.result_json)[:2] == (
        TextContent("done"),
        ImageContent("image/png", PNG),
    )


def test_the_sources_of_a_search_are_its_result() -> None:
    sources = [{"type": "url", "url": "https://a.example"}]
    item = WEB_SEARCH | {"action": {"type": "search", "query": "weather", "sources": sources}}
    call, result = decoded(item)
    assert json.loads(call.args_json) == {"type": "search", "query": "weather"}
    assert json.loads(result.result_json) == {"status": "completed", "sources": sources}


@pytest.mark.parametrize(
    "item",
    [
        WEB_SEARCH | {"status": "failed"},
        MCP_CALL | {"error": {"type": "http_error", "code": 500}},
        CODE | {"status": "incomplete"},
    ],
)
def test_a_tool_that_failed_is_told_as_failed(item: dict[str, Any]) -> None:
    assert decoded(item)[1].outcome is ToolOutcome.FAILED


def test_a_picture_that_the_provider_still_has_is_not_sent_once_more() -> None:
    call, result = decoded(IMAGE)
    mark = item_origin_of(call.provider_metadata)
    assert mark is not None
    expected = {"type": "image_generation_call", "id": "ig_1"}
    assert item_of(mark, result, is_stored=True) == expected


@pytest.mark.parametrize("result_json", ["{", "[]", '"cut"'])
def test_an_item_whose_result_was_lost_is_not_made_again(result_json: str) -> None:
    call, result = decoded(CODE)
    mark = item_origin_of(call.provider_metadata)
    assert mark is not None
    lost = ToolResult(result.tool_call_id, result.tool_name, result_json, result.outcome)
    assert item_of(mark, lost, is_stored=False) is None
    assert item_of(mark, None, is_stored=False) is None


def test_an_item_without_an_id_still_has_call_and_result_together() -> None:
    call, _ = decoded({"type": "tomorrow_call", "status": "completed", "wish": 1})
    assert (call.tool_call_id, call.tool_name, call.args_json) == (
        "item_0",
        "tomorrow",
        '{"wish":1}',
    )
