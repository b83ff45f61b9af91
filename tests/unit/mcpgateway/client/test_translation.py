"""The protocol's tools and results in our words."""

import base64

import msgspec
from mcp_types import CallToolResult
from mcp_types import Tool as ProtocolTool

from mcpgateway.client.content import (
    BlobPart,
    LinkPart,
    ResourcePart,
    StructuredPart,
    TextPart,
    ToolAnswer,
    UnknownPart,
)
from mcpgateway.client.translation import TOOLS_MAX, KeptTools, tool_answer
from mcpgateway.servers.domain import Tool

PNG = b"\x89PNG\r\n\x1a\n...."


def a_result(*content: object, **fields: object) -> CallToolResult:
    return CallToolResult.model_validate({"content": list(content), **fields})


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_all_parts_are_kept_in_order() -> None:
    result = a_result(
        {"type": "text", "text": "before\0"},
        {"type": "image", "data": encoded(PNG), "mimeType": "text/plain"},
        {"type": "audio", "data": encoded(b"abc"), "mimeType": "audio/x"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "body"}},
        {"type": "resource_link", "uri": "file:///b", "name": "b"},
        {"type": "image", "data": "???", "mimeType": "image/png"},
        isError=True,
    )

    assert tool_answer(result) == ToolAnswer(
        True,
        (
            TextPart("before"),
            BlobPart("image", "image/png", PNG),
            BlobPart("audio", "audio/x", b"abc"),
            ResourcePart("file:///a", "", b"body", True),
            LinkPart("file:///b", "b", "", ""),
            UnknownPart("image that is not base64"),
        ),
    )


def test_a_structured_result_that_a_text_repeats_is_left_out() -> None:
    result = a_result({"type": "text", "text": '{ "a": 1 }'}, structuredContent={"a": 1})

    assert tool_answer(result) == ToolAnswer(False, (TextPart('{ "a": 1 }'),))


def test_a_structured_result_of_its_own_is_a_part() -> None:
    result = a_result({"type": "text", "text": "done"}, structuredContent={"a": 1})

    assert tool_answer(result) == ToolAnswer(False, (TextPart("done"), StructuredPart(b'{"a":1}')))


def a_tool(name: str = "echo", **fields: object) -> ProtocolTool:
    return ProtocolTool.model_validate({"name": name, "inputSchema": {}, **fields})


def usable_tools(listed: list[ProtocolTool]) -> tuple[dict[str, Tool], int]:
    kept = KeptTools()
    kept.add(listed)
    return kept.tools, kept.dropped


def test_an_input_schema_is_an_object_and_keeps_everything_else() -> None:
    schema = {"$defs": {"x": {}}, "anyOf": []}
    tools, _ = usable_tools([a_tool(inputSchema=schema)])

    assert msgspec.json.decode(tools["echo"].input_schema_json) == {"type": "object", **schema}


def test_tools_that_no_model_can_be_given_are_dropped_alone() -> None:
    large = {"description": "x" * 70_000}
    tools, dropped = usable_tools(
        [
            a_tool("good"),
            a_tool("x" * 129),
            a_tool(""),
            a_tool("array", inputSchema={"type": "array"}),
            a_tool("large", inputSchema=large),
            a_tool("number", inputSchema={"maximum": 10**5000}),
            a_tool("good", description="again"),
        ]
    )

    assert (list(tools), dropped) == (["good"], 6)


def test_a_digest_changes_with_the_definition_and_only_with_it() -> None:
    plain, reordered, described, hinted = (
        usable_tools([tool])[0]["echo"].digest
        for tool in (
            a_tool(inputSchema={"a": 1, "b": 2}),
            a_tool(inputSchema={"b": 2, "a": 1}),
            a_tool(inputSchema={"a": 1, "b": 2}, description="new"),
            a_tool(inputSchema={"a": 1, "b": 2}, annotations={"readOnlyHint": True}),
        )
    )

    assert plain == reordered
    assert len({plain, described, hinted}) == 3


def test_a_long_description_is_cut_and_says_so() -> None:
    tools, _ = usable_tools([a_tool(description="é" * 2000)])
    description = tools["echo"].description

    assert len(description.encode()) <= 2048
    assert description.endswith(" [description cut]")


def test_tools_beyond_the_bytes_of_a_catalogue_are_dropped_and_end_it() -> None:
    kept = KeptTools(bytes_max=3000)

    for page in range(3):
        kept.add([a_tool(f"{page}{number}", description="x" * 900) for number in range(2)])

    assert (list(kept.tools), kept.dropped, kept.is_full) == (["00", "01", "10"], 3, True)


def test_a_catalogue_of_exactly_as_many_tools_as_fit_is_not_full() -> None:
    kept = KeptTools()

    kept.add(a_tool(f"t{number}") for number in range(TOOLS_MAX))
    was_full = kept.is_full
    kept.add([a_tool("more")])

    assert (len(kept.tools), kept.dropped, was_full, kept.is_full) == (TOOLS_MAX, 1, False, True)


def test_a_listing_ends_when_too_much_of_its_schemas_was_read() -> None:
    twice = {
        f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(12)
    }
    costly = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**twice, "d12": {}}}
    kept = KeptTools(nodes_max=10_000)

    kept.add([a_tool(f"t{number}", inputSchema=costly) for number in range(20)])
    kept.add([a_tool("more")])

    assert (kept.tools, kept.dropped, kept.is_full) == ({}, 21, True)


def test_tools_are_kept_until_a_listing_is_read() -> None:
    kept = KeptTools(nodes_max=100)

    kept.add([a_tool(f"t{number}") for number in range(1000)])

    assert 10 < len(kept.tools) < 100
    assert (len(kept.tools) + kept.dropped, kept.is_full) == (1000, True)
