"""What the results of MCP servers become in a history."""

import json

import pytest

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Outcome
from chatd.providers.media import ImageContent, TextContent, read_result
from chatd.tools.mcp_results import outcome_of
from parley.api.mcp.v1 import tool_pb2

PNG = b"\x89PNG\r\n\x1a\n and the rest"


def parts() -> list[tool_pb2.ContentPart]:
    return [
        tool_pb2.ContentPart(text=tool_pb2.TextContent(text="seen")),
        tool_pb2.ContentPart(image=tool_pb2.BlobContent(media_type="image/png", data=PNG)),
        tool_pb2.ContentPart(
            resource=tool_pb2.ResourceContent(uri="a:b", media_type="text/plain", text="hi")
        ),
        tool_pb2.ContentPart(
            streamed_bytes=9_000_000, image=tool_pb2.BlobContent(media_type="image/png")
        ),
    ]


def test_pictures_of_a_server_reach_the_model_as_pictures() -> None:
    result = tool_pb2.CallResult(outcome=tool_pb2.CALL_OUTCOME_SUCCEEDED, parts=parts())
    outcome = outcome_of(result)
    assert outcome.outcome is ToolOutcome.DONE
    text, picture, resource, large = read_result(outcome.result_json)
    assert text == TextContent("seen")
    assert isinstance(picture, ImageContent)
    assert picture.bytes_count == len(PNG)
    assert isinstance(resource, TextContent)
    assert json.loads(resource.text)["text"] == "hi"
    assert large == TextContent('{"type": "image", "streamed_bytes": 9000000}')


@pytest.mark.parametrize(
    ("ended", "outcome", "hint"),
    [
        (tool_pb2.CALL_OUTCOME_FAILED, ToolOutcome.FAILED, {}),
        (
            tool_pb2.CALL_OUTCOME_UNKNOWN,
            ToolOutcome.UNKNOWN,
            {"hint": "Check before you repeat it."},
        ),
    ],
)
def test_a_failure_is_told_with_its_words_and_an_unknown_effect_with_a_warning(
    ended: tool_pb2.CallOutcome.ValueType, outcome: ToolOutcome, hint: dict[str, str]
) -> None:
    result = tool_pb2.CallResult(outcome=ended, message="no such zone")
    told = {"content": [], "error": "no such zone", **hint}
    assert outcome_of(result) == Outcome(outcome, json.dumps(told))
