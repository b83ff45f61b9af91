"""Anything at all may be streamed."""

import json

from hypothesis import given
from hypothesis import strategies as st

from chatd.models.domain.language_model import (
    Finished,
)
from chatd.providers.anthropic import AnthropicDecoder
from chatd.providers.wire import ProviderFailed

WORDS = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "web_search_tool_result",
        "text_delta",
        "input_json_delta",
        "signature_delta",
        "citations_delta",
    ]
)
FIELDS = st.sampled_from(
    [
        "type",
        "index",
        "delta",
        "content_block",
        "message",
        "usage",
        "error",
        "text",
        "thinking",
        "signature",
        "partial_json",
        "citation",
        "id",
        "name",
        "input",
        "caller",
        "tool_use_id",
        "content",
        "stop_reason",
        "stop_details",
    ]
)
VALUES = st.recursive(
    WORDS | st.integers(-1, 3) | st.none() | st.booleans() | st.text(max_size=4),
    lambda inner: st.dictionaries(FIELDS, inner, max_size=5) | st.lists(inner, max_size=2),
    max_leaves=10,
)
EVENTS = st.builds(
    lambda kind, rest: {**rest, "type": kind}, WORDS, st.dictionaries(FIELDS, VALUES)
)


@given(st.lists(EVENTS.map(lambda each: json.dumps(each).encode()) | st.binary(), max_size=8))
def test_anything_at_all_raises_only_the_typed_error(datas: list[bytes]) -> None:
    decoder = AnthropicDecoder()
    try:
        events = [event for data in datas for event in decoder.decode(data)]
        events.extend(decoder.end())
    except ProviderFailed:
        return
    assert isinstance(events[-1], Finished)
    assert sum(isinstance(each, Finished) for each in events) == 1
